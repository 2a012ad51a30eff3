use super::args::{Global, RunArgs};
pub(super) fn run(_: &Global, _: &RunArgs) -> anyhow::Result<u8> {
    anyhow::bail!("todo")
}
pub(super) fn attach(_: &Global, _: Option<&std::path::Path>) -> anyhow::Result<u8> {
    anyhow::bail!("todo")
}
