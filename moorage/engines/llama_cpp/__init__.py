"""llama.cpp: `llama-server`, or the server in the xllamacpp wheel behind the same options."""
