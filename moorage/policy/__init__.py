"""What a site allows: its policy, and the judgement of what a run asks for.

The file is read in `moorage/adapters/files/policy_file.py`; `tasks/policy.py` judges in every flow.
"""
