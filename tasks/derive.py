"""Step derive: what the model is."""

from moorage.common.units import human_bytes
from moorage.models.profile import ModelProfile, derive_profile
from moorage.models.source import ResolvedModel
from moorage.reports.record import profile_document
from moorage.spec import ModelSpec, slug
from tasks.artifacts import show_markdown
from tasks.flow_task import flow_task
from tasks.journal import step
from tasks.smoke_test import must_talk


@flow_task("derive", "derive {spec.name}")
async def derive(spec: ModelSpec, model: ResolvedModel) -> ModelProfile:
    """Read architecture, mode, context length and sizes from the configuration."""
    with step("derive") as note:
        profile = derive_profile(spec, model)
        must_talk(spec, profile)
        page = profile_document(spec, model, profile).markdown()
        await show_markdown(f"model-{slug(spec.name)}", page, f"What {spec.source} is")
        what = ", ".join(profile.architectures) or profile.model_type or "unknown"
        note.say(
            f"{what}, {profile.mode}, {profile.context} tokens,"
            f" {human_bytes(profile.weight_bytes)} of weights"
        )
        return profile
