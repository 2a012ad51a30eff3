//! The session of a job: a new one, or one that is taken up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::args::{Global, SweepArgs};
use super::settings;
use crate::config;
use crate::discover::{self, Machine};
use crate::launch::guard;
use crate::measure::Start;
use crate::sample::{EngineKind, Pattern};
use crate::session::store::Store;
use crate::session::{Event, Header, Model, Record};
use crate::sweep::SweepSettings;
use crate::transport::Engine;
use crate::units::format_ranks;

/// The session of this job: new, or taken up.
pub(super) struct Session {
    pub(super) store: Store,
    pub(super) header: Header,
    /// what it holds already
    pub(super) records: Vec<Record>,
    /// what to measure first, or what the Sweep tab offers
    pub(super) settings: SweepSettings,
    pub(super) start: Option<Start>,
    pub(super) next_probe: u64,
    /// the command that goes on from here
    pub(super) resume: String,
    /// plans to look at
    pub(super) plans: Vec<PathBuf>,
}

impl Session {
    pub(super) fn open(global: &Global, args: &SweepArgs, engine: &dyn Engine) -> Result<Self> {
        let topology = engine.topology();
        let (kind, world) = (engine.kind(), topology.world());
        if let Some(folder) = &args.resume {
            return Self::resume(folder, args, engine);
        }
        let settings = settings::settings(args, kind, topology, None)?;
        let hosts = topology.hosts();
        let folder = match &global.session {
            Some(folder) => folder.clone(),
            None => config::new_session(&config::sessions(&global.config), hosts.first().copied().unwrap_or("host"), hosts.len(), world),
        };
        let header = header(&folder, engine, &settings);
        let store = Store::create(&folder, &header);
        let store = if global.session.is_none() { store.context("no place for the session; name one with --session DIR")? } else { store? };
        let resume = resume_command(&folder);
        Ok(Self { store, header, records: Vec::new(), settings, start: None, next_probe: 0, resume, plans: args.plans.clone() })
    }

    fn resume(folder: &Path, args: &SweepArgs, engine: &dyn Engine) -> Result<Self> {
        let (store, recorded) = Store::resume(folder)?;
        let (theirs, ours) = (&recorded.header, engine.topology());
        if theirs.engine != engine.kind() || theirs.topology.world() != ours.world() {
            bail!(
                "{} was measured by {} {} ranks; this job has {} {}: start it with as many of the same engine",
                folder.display(),
                theirs.topology.world(),
                theirs.engine.name(),
                ours.world(),
                engine.kind().name()
            );
        }
        if theirs.topology.hosts() != ours.hosts() {
            bail!(
                "{} was measured on {}; this job is on {}: samples of other hosts do not belong in it",
                folder.display(),
                theirs.topology.hosts().join(", "),
                ours.hosts().join(", ")
            );
        }
        if recorded.header.group != engine.group() {
            let told = |group: &[usize]| if group.is_empty() { "all ranks".to_owned() } else { format!("--group {}", format_ranks(group)) };
            bail!("{} was measured with {}; this job has {}", folder.display(), told(&recorded.header.group), told(engine.group()));
        }
        let simulated = |header: &Header| header.software.get(EngineKind::Sim.name()).cloned();
        if let Some(before) = simulated(&recorded.header).filter(|before| *before != engine.software()) {
            bail!("{} is of another fabric ({before}): its samples do not belong to {}", folder.display(), engine.software());
        }
        let mut model = Model::new(recorded.header.clone());
        for record in &recorded.records {
            model.apply(record);
        }
        let base = model.sweep.as_ref().map_or_else(|| recorded.header.settings.clone(), |sweep| sweep.settings.clone());
        let settings = settings::settings(args, engine.kind(), ours, Some(base))?;
        if let Some(before) = model.sweep.as_ref().map(|sweep| &sweep.settings) {
            comparable(before, &settings)?;
        }
        let next_probe = recorded.records.iter().filter_map(|record| match &record.event {
            Event::ProbeStarted { probe } => Some(probe.id + 1),
            Event::ProbeDone { probe, .. } => Some(probe + 1),
            _ => None,
        });
        let next_probe = next_probe.max().unwrap_or(0);
        let start = Start { settings: settings.clone(), done: model.done(), resumed: true };
        let resume = resume_command(folder);
        let (header, records, plans) = (recorded.header, recorded.records, args.plans.clone());
        Ok(Self { store, header, records, settings, start: Some(start), next_probe, resume, plans })
    }
}

/// Refuse to add samples that were taken differently to a sweep's own, or that would be called the same and are not.
fn comparable(before: &SweepSettings, now: &SweepSettings) -> Result<()> {
    let words = |settings: &SweepSettings| {
        let buffers = format!("{:?}", settings.buffers).to_lowercase();
        [
            ("mover", settings.mover.name().to_owned()),
            ("memory", settings.memory.name().to_owned()),
            ("gpus", settings.gpus.join(",")),
            ("window", settings.window.to_string()),
            ("buffers", buffers),
        ]
    };
    for ((name, before), (_, now)) in words(before).into_iter().zip(words(now)) {
        if before != now {
            bail!(
                "--resume: the session's samples were taken with --{name} {before}; samples with --{name} {now} need a session of their own"
            );
        }
    }
    let both = |pattern| before.patterns.contains(&pattern) && now.patterns.contains(&pattern);
    if both(Pattern::Relay) && before.ranks != now.ranks {
        bail!("--resume: a relay goes over all ranks that are measured; with other --ranks it needs a session of its own");
    }
    if both(Pattern::Custom) {
        let set = |settings: &SweepSettings, set: u32| {
            let own = settings.transfers.iter().filter(|transfer| transfer.set == set);
            own.map(|transfer| (transfer.from, transfer.to)).collect::<BTreeSet<_>>()
        };
        let known = before.transfers.iter().map(|transfer| transfer.set);
        let other = known.filter(|&id| !set(now, id).is_empty()).find(|&id| set(before, id) != set(now, id));
        if let Some(id) = other {
            bail!("--resume: set {id} of the pattern file has other transfers in the session; give the new ones another number");
        }
    }
    Ok(())
}

#[cfg_attr(not(feature = "cuda"), allow(unused_mut, reason = "only builds with CUDA know more"))]
fn header(folder: &Path, engine: &dyn Engine, settings: &SweepSettings) -> Header {
    let machine = Machine::default();
    let name = folder.file_name().map_or_else(|| "session".to_owned(), |name| crate::units::plain(&name.to_string_lossy()));
    let mut software = vec![
        ("toposcope".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("system".to_owned(), machine.system()),
        ("processor".to_owned(), machine.processor()),
        (engine.kind().name().to_owned(), engine.software()),
    ];
    // What the person has set, not what this program has.
    let mut environment = discover::environment();
    #[cfg(feature = "cuda")]
    {
        use crate::transport::cuda::nccl;
        for name in nccl::log::asked() {
            environment.remove(name);
        }
        if settings.memory == crate::sample::Memory::Cuda
            && let Ok(api) = nccl::api()
        {
            software.push(("nccl".to_owned(), api.describe()));
        }
    }
    Header {
        format: Header::current_format(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        name,
        started: jiff::Timestamp::now().to_string(),
        engine: engine.kind(),
        group: engine.group().to_vec(),
        settings: settings.clone(),
        topology: engine.topology().clone(),
        software: software.into_iter().collect(),
        environment,
    }
}

/// The command by which this job would go on: what was typed, with `--resume` for what decides the session.
fn resume_command(folder: &Path) -> String {
    let session = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let typed = guard::command_line().unwrap_or_else(|| "toposcope".to_owned());
    // What names a session gives way to the session itself.
    let mut words: Vec<&str> = Vec::new();
    let mut skip = false;
    for word in typed.split(' ') {
        let names =
            ["--resume", "--session"].iter().any(|flag| word == *flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')));
        if !names && !skip {
            words.push(word);
        }
        skip = names && !word.contains('=');
    }
    format!("{} --resume {}", words.join(" "), session.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Memory, MoverKind};
    use crate::sweep::Transfer;

    #[test]
    fn only_what_was_taken_alike_goes_on() {
        let before = SweepSettings::default();
        let more = SweepSettings { repeats: 20, timeout: 60.0, ..before.clone() };
        assert!(comparable(&before, &more).is_ok());
        let other = SweepSettings { window: 64, ..before.clone() };
        assert!(comparable(&before, &other).unwrap_err().to_string().contains("--window 64"));
        let other = SweepSettings { memory: Memory::Cuda, ..before.clone() };
        assert!(comparable(&before, &other).unwrap_err().to_string().contains("--memory cuda"));
        let other = SweepSettings { mover: MoverKind::MpiPut, ..before.clone() };
        assert!(comparable(&before, &other).is_err());
        // More fans, shifts and pairs have names of their own.
        let more = SweepSettings { widths: vec![1, 2], shifts: vec![2], pairs: 4, isolated: true, ci: 0.1, budget: 9.0, ..before.clone() };
        assert!(comparable(&before, &more).is_ok());
    }

    #[test]
    fn relays_and_sets_keep_their_meaning() {
        let transfer = |set, from, to| Transfer { set, from, to };
        let before = SweepSettings {
            patterns: vec![Pattern::Relay, Pattern::Custom],
            transfers: vec![transfer(0, 0, 1), transfer(0, 1, 2), transfer(4, 2, 0)],
            ..SweepSettings::default()
        };
        let others = SweepSettings { ranks: vec![0, 1], ..before.clone() };
        assert!(comparable(&before, &others).unwrap_err().to_string().contains("relay"));
        assert!(comparable(&before, &SweepSettings { patterns: vec![Pattern::Custom], ..others }).is_ok());
        let with = |transfers| SweepSettings { transfers, ..before.clone() };
        assert!(comparable(&before, &with(vec![transfer(0, 1, 2), transfer(0, 0, 1), transfer(7, 0, 1)])).is_ok());
        assert!(comparable(&before, &with(vec![transfer(0, 1, 2)])).unwrap_err().to_string().contains("set 0"));
    }
}
