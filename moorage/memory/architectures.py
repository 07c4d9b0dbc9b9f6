"""Facts of vLLM 0.32 about model architectures, as data.

Source: `model_executor/models/registry.py` and the class bases and constructors in
`model_executor/models/`.
"""

from enum import StrEnum


class Part(StrEnum):
    """Parts of a model that belong to no decoder layer."""

    EMBEDDING = "embedding"
    NORM = "norm"
    HEAD = "head"
    OTHER = "other"


REMOVED: dict[str, str] = {
    **dict.fromkeys(("MotifForCausalLM", "Phi4FlashForCausalLM"), "0.10.2"),
    **dict.fromkeys(("DonutForConditionalGeneration", "MllamaForConditionalGeneration"), "0.10.2"),
    "Phi3SmallForCausalLM": "0.9.2",
    "JAISLMHeadModel": "0.22.0",
    **dict.fromkeys(("InternLMForCausalLM", "InternLM2VEForCausalLM"), "0.23.0"),
    **dict.fromkeys(("QWenLMHeadModel", "QwenVLForConditionalGeneration"), "0.23.0"),
    **dict.fromkeys(("XverseForCausalLM", "BambaForCausalLM"), "0.23.0"),
    **dict.fromkeys(("MiniMaxForCausalLM", "MiniMaxText01ForCausalLM"), "0.23.0"),
    **dict.fromkeys(("MiniMaxM1ForCausalLM", "MiniMaxVL01ForConditionalGeneration"), "0.23.0"),
    **dict.fromkeys(("BaiChuanForCausalLM", "BaichuanForCausalLM"), "0.23.0"),
    **dict.fromkeys(("AquilaModel", "AquilaForCausalLM"), "0.24.0"),
    **dict.fromkeys(("Grok1ModelForCausalLM", "Grok1ForCausalLM"), "0.24.0"),
    **dict.fromkeys(("TeleChatForCausalLM", "FuyuForCausalLM"), "0.25.0"),
    **dict.fromkeys(("Plamo2ForCausalLM", "OuroForCausalLM"), "0.26.0"),
    **dict.fromkeys(("ArcticForCausalLM", "Fairseq2LlamaForCausalLM", "GritLM"), "0.28.0"),
    **dict.fromkeys(("MPTForCausalLM", "MptForCausalLM", "RWForCausalLM"), "0.28.0"),
    **dict.fromkeys(("StableLMEpochForCausalLM", "ChameleonForConditionalGeneration"), "0.28.0"),
}
"""Architectures that vLLM no longer has, with the last version that had them."""

PLUGIN_ONLY = (
    *("BartModel", "BartForConditionalGeneration", "MBartForConditionalGeneration"),
    "Florence2ForConditionalGeneration",
)
"""Architectures that need a plug-in since 0.11.0."""

UNSUPPORTED = frozenset(
    f"{stem}{ending}"
    for ending, stems in {
        "ForCausalLM": (
            "BigBird BigBirdPegasus Blenderbot BlenderbotSmall Blt CodeGen CpmAnt DiffLlama"
            " GPTNeo GPTNeoXJapanese MBart Marian MegatronBert Mvp PLBart Pegasus ProphetNet"
            " RecurrentGemma RemBert RoFormer Rwkv TrOCR XGLM xLSTM"
        ),
        "ForMaskedLM": (
            "Albert BigBird ConvBert Deberta DebertaV2 DistilBert Esmc FNet Funnel Gte IBert"
            " JinaEmbeddingsV3 LayoutLM Longformer Luke MPNet MegatronBert MobileBert ModernBert"
            " Mra NomicBert Nystromformer Perceiver Reformer RemBert RoFormer SqueezeBert Tapas"
            " Yoso"
        ),
        "ForSequenceClassification": (
            "Albert Bart BigBird BigBirdPegasus Canine ConvBert Deberta DebertaV2 DiffLlama"
            " DistilBert Esmc FNet Flaubert Funnel GPTNeo IBert LayoutLM LayoutLMv3 Lilt"
            " Longformer Luke MBart MPNet MT5 MarkupLM MegatronBert MobileBert Mpt Mra Mvp"
            " Nystromformer OpenAIGPT PLBart Perceiver Reformer RemBert RoFormer SqueezeBert T5"
            " Tapas UMT5 XLM XLNet Yoso"
        ),
        "ForConditionalGeneration": (
            "BigBirdPegasus Blenderbot BlenderbotSmall Blip FSMT LED LongT5 M2M100 MT5 Mvp"
            " NllbMoe PI0 PLBart Pegasus ProphetNet SwitchTransformers T5 UMT5 Udop"
        ),
        "": (
            "DistilBertModel FlaubertWithLMHeadModel IdeficsForVisionText2Text MarianMTModel"
            " OpenAIGPTLMHeadModel SeamlessM4TForTextToText SeamlessM4Tv2ForTextToText"
            " XLMWithLMHeadModel XLNetLMHeadModel"
        ),
    }.items()
    for stem in stems.split()
)
"""Architectures that neither vLLM nor its Transformers backend can run."""

ENCODERS = (
    *("BertModel", "BertForMaskedLM", "BertForSequenceClassification", "NomicBertModel"),
    *("BertForTokenClassification", "BertSpladeSparseEmbeddingModel", "BgeM3EmbeddingModel"),
    *("RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification"),
    *("RobertaForTokenClassification", "XLMRobertaModel", "XLMRobertaForSequenceClassification"),
    *("XLMRobertaForTokenClassification", "GteModel", "GteNewModel", "HF_ColBERT"),
    *("GteNewForSequenceClassification", "ModernBertModel", "ModernBertForTokenClassification"),
    *("ModernBertForSequenceClassification", "LlamaBidirectionalModel"),
    *("LlamaBidirectionalForSequenceClassification", "VoyageQwen3BidirectionalEmbedModel"),
)
"""Architectures whose attention keeps no KV cache."""

NO_PIPELINE = (
    *ENCODERS,
    *("Gemma3TextModel", "EmbeddingGemma2Model", "JinaForRanking"),
    *("GPT2ForSequenceClassification", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"),
    *("HrmTextForCausalLM", "IQuestLoopCoderForCausalLM", "Mamba2ForCausalLM"),
    *("Zamba2ForCausalLM", "Phi4MMForCausalLM", "WhisperForConditionalGeneration"),
)
"""Architectures without the `SupportsPP` interface."""

POOLING_ENDINGS = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForMaskedLM")
"""Endings of architecture names that vLLM runs with the pooling runner."""

GENERATING_MODELS = (
    *("ChatGLMModel", "DeepseekV3BidirectionalModel", "Gemma2Model", "LlamaModel"),
    *("MistralModel", "Qwen2Model", "Qwen2_5OmniModel", "LMHeadModel", "ChatModel"),
    *("MossAudioModel", "UltravoxModel"),
)
"""Endings of names that match `POOLING_ENDINGS` although their model class generates."""

POOLING_MODELS = (
    *("ColPaliForRetrieval", "ColModernVBertForRetrieval", "ColQwen3", "ColQwen3_5", "HF_ColBERT"),
    *("ClefOmniForJointSchema", "JinaForRanking", "JinaVLForRanking"),
)
"""Architectures that pool although their names do not match `POOLING_ENDINGS`."""

CLASSIFIER_ENDINGS = ("ForSequenceClassification", "ForTokenClassification")
"""Endings of architecture names with a classifier's head."""

NO_FLOAT16 = ("gemma2", "gemma3", "gemma3_text", "glm4")
"""Model types that vLLM does not run in float16 (`config/model.py`)."""

_ALL = frozenset({Part.EMBEDDING, Part.NORM, Part.HEAD})

ON_EVERY_STAGE: dict[str, frozenset[Part]] = {
    **dict.fromkeys(
        (
            *("BloomForCausalLM", "ChatGLMModel", "ChatGLMForConditionalGeneration"),
            *("DbrxForCausalLM", "FalconForCausalLM", "FalconMambaForCausalLM"),
            *("GemmaForCausalLM", "Gemma3ForCausalLM", "Gemma4ForCausalLM", "Rnj1ForCausalLM"),
            *("GptOssForCausalLM", "GPT2LMHeadModel", "GPTJForCausalLM"),
            *("GraniteMoeForCausalLM", "GraniteMoeHybridForCausalLM"),
            *("GraniteMoeSharedForCausalLM", "GraniteMoeSWAForCausalLM", "HYV3ForCausalLM"),
            *("JambaForCausalLM", "MambaForCausalLM", "Mamba2ForCausalLM"),
            *("MiniCPMForCausalLM", "MiniCPM3ForCausalLM", "MixtralForCausalLM"),
            *("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "OlmoHybridForCausalLM"),
            *("OlmoeForCausalLM", "OrionForCausalLM", "PhiMoEForCausalLM", "Plamo3ForCausalLM"),
            *("Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "StableLmForCausalLM"),
            *("CohereForCausalLM", "Cohere2ForCausalLM", "Cohere2MoeForCausalLM"),
            *("Gemma2ForCausalLM", "Gemma3nForCausalLM", "InternLM2ForCausalLM"),
            *("OPTForCausalLM", "K2HorizonForCausalLM"),
        ),
        _ALL,
    ),
    "Qwen3NextForCausalLM": frozenset({Part.EMBEDDING, Part.HEAD}),
    **dict.fromkeys(
        (
            *("Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "Qwen3_5ForCausalLM"),
            *("Qwen3_5MoeForCausalLM", "Qwen3_5ForConditionalGeneration"),
            "Qwen3_5MoeForConditionalGeneration",
        ),
        frozenset({Part.EMBEDDING}),
    ),
}
"""Parts that a model class allocates on every pipeline stage, even where they are unused.

Other classes allocate the embedding on the first stage (and on the last if the head is tied to it),
norm and head on the last.
"""

TIED_BY_DEFAULT = (
    *("bloom", "cohere", "cohere2", "cohere2_moe", "ernie4_5", "ernie4_5_moe", "falcon"),
    *("falcon_mamba", "gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text", "gpt2"),
    *("gpt_bigcode", "granite_swa", "lfm2", "lfm2_moe", "mamba", "minicpm3", "opt", "smollm3"),
    *("starcoder2", "vaultgemma", "whisper", "youtu", "zamba2"),
)
"""Model types whose head is tied to the embedding unless the configuration says otherwise."""

NEVER_TIED = (
    *("AfmoeForCausalLM", "AXK1ForCausalLM", "DeepseekForCausalLM", "DeepseekV2ForCausalLM"),
    *("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Glm4MoeForCausalLM"),
    *("Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", "GptOssForCausalLM", "JambaForCausalLM"),
    *("JambaForSequenceClassification", "LongcatFlashForCausalLM", "MiniMaxM2ForCausalLM"),
    *("NemotronHForCausalLM", "OlmoeForCausalLM", "PhiMoEForCausalLM", "Qwen3NextForCausalLM"),
)
"""Architectures whose class creates a separate head, whatever the configuration says."""

MLA_TYPES = (
    *("axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite"),
    *("kimi_k2", "kimi_linear", "longcat_flash", "pangu_ultra_moe", "bailing_hybrid"),
    *("dots3_note", "sarvam_mla"),
)
"""Model types with a compressed KV cache (`is_deepseek_mla`) if `kv_lora_rank` is set."""

UNCOVERED: dict[str, str] = {
    **dict.fromkeys(("deepseek_v4", "deepseek_v41"), "its KV groups are packed"),
    "bailing_hybrid": "its linear attention is not modelled",
    "deci": "its layers differ in their heads",
    "nemotron-nas": "its layers differ in their heads",
    **dict.fromkeys(
        (
            *("voxtral_realtime", "voxtral_realtime_text", "VoxtralRealtimeGeneration"),
            "VoxtralRealtimeForConditionalGeneration",
        ),
        "its encoder keeps a KV cache of its own",
    ),
}
"""Model types and architectures that the rules do not cover, with the reason."""

PLAIN_CACHES = (
    *("bailing_moe", "bailing_moe_v2", "chatglm", "exaone", "glm4v_text", "glm4v_moe_text"),
    *("hyperclovax", "internlm2", "internlm3", "mimo", "minicpm", "minicpm3", "orion"),
    *("param2moe", "phi3_v", "phi4mm", "qwen2_5_omni_text", "qwen2_5_vl", "qwen2_vl"),
    *("qwen3_omni_moe_text", "solar", "step1", "telechat"),
)
"""Model types without a rule of their own whose class, as read, makes one plain cache a layer."""
