//! `prism demo-server`: on stdio it is the demo server itself; with `--http` a bridge of our own in front of it.

use anyhow::Context;
use clap::ValueEnum;

use super::run::RunArgs;
use crate::demo::{self, DemoOptions};
use prism_config::Env;

pub(super) fn run(options: DemoOptions, env: &Env) -> anyhow::Result<()> {
    let Some(address) = options.http else { return Ok(demo::run(options)?) };
    let own = std::env::current_exe().context("cannot find out where this program is")?;
    let own = own.to_str().context("the path of this program is not UTF-8")?;
    let mut command = vec![own.to_owned(), "demo-server".to_owned()];
    let mut option = |name: &str, value: &str| command.extend([format!("--{name}"), value.to_owned()]);
    let word = |value: Option<clap::builder::PossibleValue>| value.map(|it| it.get_name().to_owned());
    option("era", options.era.name());
    if let Some(fault) = word(options.fault.to_possible_value()) {
        option("fault", &fault);
    }
    for (name, path) in [("starts", &options.starts), ("record", &options.record)] {
        if let Some(path) = path {
            option(name, path.to_str().with_context(|| format!("--{name} is not UTF-8"))?);
        }
    }
    RunArgs::own(command, address, options.enable_post_sse.unwrap_or(true)).run(env)
}
