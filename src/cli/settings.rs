//! Arguments as typed -> settings ready to use.

use anyhow::{Context, Result, bail};

use super::args::{BuffersArg, MemoryArg, MemoryArgs, SweepArgs};
use crate::fabric::Fabric;
use crate::sample::{EngineKind, Memory, MoverKind, Pattern};
use crate::sweep::{Buffers, Peers, SweepSettings, estimate, parse_gpus, parse_pattern_file, parse_peers_file};
use crate::topology::Topology;
use crate::transport::libraries::cuda_devices;
use crate::units::{parse_ranks, parse_size, parse_sizes};

/// Ranks of the threads engine when nobody says how many: one a core, and few enough to see at a glance.
const MOST_THREADS: usize = 16;

/// Repeats at most when the interval decides and nobody says how many: by default, and when --ci is given.
const MOST_REPEATS: (u32, u32) = (40, 100);
/// Half-width of an interval that is enough when nobody says otherwise, as a share of the median.
const WIDTH: f64 = 0.05;
/// The largest size when nobody says otherwise; less where memory is short.
const LARGEST: &str = "4KiB..256MiB";

/// Settings for a job: the defaults, or a resumed session's, with what was typed laid over them.
pub fn settings(args: &SweepArgs, engine: EngineKind, topology: &Topology, resumed: Option<SweepSettings>) -> Result<SweepSettings> {
    let world = topology.world();
    let fresh = resumed.is_none();
    let mut settings = match resumed {
        Some(settings) => settings,
        None => defaults(engine)?,
    };
    if let Some(text) = &args.patterns {
        settings.patterns = patterns(text)?;
    }
    if let Some(text) = &args.sizes {
        settings.sizes = parse_sizes(text).context("--sizes")?;
    }
    if let (Some(text), EngineKind::Mpi | EngineKind::Sim) = (&args.ranks, engine) {
        settings.ranks = parse_ranks(text, world).context("--ranks")?;
    }
    if let Some(text) = &args.timeout {
        settings.timeout = seconds(text).context("--timeout")?;
    }
    lay_memory(&args.buffer, &mut settings);
    match &args.mover {
        Some(name) => settings.mover = mover(name)?,
        None if fresh => settings.mover = usual_mover(engine, settings.memory),
        None => {}
    }
    if let Some(text) = &args.arena {
        settings.arena = parse_size(text).context("--arena")?;
    }
    if let Some(text) = &args.widths {
        settings.widths = numbers(text).context("--widths")?;
    }
    if let Some(text) = &args.shifts {
        settings.shifts = numbers(text).context("--shifts")?;
    }
    if let Some(text) = &args.peers {
        settings.peers = peers(text, world)?;
    }
    if let Some(path) = &args.pattern_file {
        let at = || format!("--pattern-file {}", path.display());
        let text = std::fs::read_to_string(path).with_context(at)?;
        settings.transfers = parse_pattern_file(&text, world).with_context(at)?;
        if !settings.patterns.contains(&Pattern::Custom) {
            settings.patterns.push(Pattern::Custom);
        }
    }
    if let Some(text) = &args.budget {
        settings.budget = seconds(text).context("--budget")?;
    }
    (settings.ci, settings.repeats) = match (args.ci, args.repeats) {
        (None, None) => (settings.ci, settings.repeats),
        (None, Some(repeats)) => (0.0, repeats),
        (Some(ci), None) => (ci, MOST_REPEATS.1),
        (Some(ci), Some(repeats)) => (ci, repeats),
    };
    settings.pairs = args.pairs.unwrap_or(settings.pairs);
    settings.isolated |= args.isolated;
    settings.warmup = args.warmup.unwrap_or(settings.warmup);
    settings.window = args.window.unwrap_or(settings.window);
    settings.seed = args.seed.unwrap_or(settings.seed);
    match args.buffers {
        Some(BuffersArg::Rotate) => settings.buffers = Buffers::Rotate,
        Some(BuffersArg::Reuse) => settings.buffers = Buffers::Reuse,
        None => {}
    }
    settings.check(world)?;
    if fresh && args.sizes.is_none() {
        lower(&mut settings, topology);
    }
    Ok(settings)
}

/// Settings that an engine begins with.
fn defaults(engine: EngineKind) -> Result<SweepSettings> {
    let mover = usual_mover(engine, Memory::Host);
    let sizes = parse_sizes(LARGEST)?;
    Ok(SweepSettings { mover, sizes, ci: WIDTH, repeats: MOST_REPEATS.0, ..SweepSettings::default() })
}

/// The mover when nobody says which. Jobs move GPU memory by NCCL; MPI need not be able to.
fn usual_mover(engine: EngineKind, memory: Memory) -> MoverKind {
    match (engine, memory) {
        (EngineKind::Threads, _) => MoverKind::Memcpy,
        (EngineKind::Mpi, Memory::Host) => MoverKind::MpiSendrecv,
        (EngineKind::Mpi, Memory::Cuda) => MoverKind::Nccl,
        (EngineKind::Sim, _) => MoverKind::Simulated,
        (EngineKind::Imported, _) => MoverKind::Untold,
    }
}

/// Where buffers lie, as typed, over what the settings say. A list of GPUs belongs to the memory that it was typed for.
fn lay_memory(args: &MemoryArgs, settings: &mut SweepSettings) {
    if let Some(memory) = args.memory.map(MemoryArg::memory).filter(|memory| *memory != settings.memory) {
        (settings.memory, settings.gpus) = (memory, Vec::new());
    }
    if let Some(text) = &args.gpus {
        settings.gpus = parse_gpus(text);
    }
}

/// Leave the largest sizes out whose buffers take more than a quarter of a host's memory.
fn lower(settings: &mut SweepSettings, topology: &Topology) {
    let tightest = |settings: &SweepSettings| estimate(settings, topology, |_| 1e9).tightest;
    while settings.sizes.len() > 1
        && let Some((_, wanted, available)) = tightest(settings)
        && wanted > available / 4
    {
        let mut fewer = settings.clone();
        fewer.sizes.pop();
        // Arenas outgrow the caches, whatever the sizes.
        if tightest(&fewer).is_none_or(|(_, less, _)| less >= wanted) {
            break;
        }
        *settings = fewer;
    }
}

/// Numbers such as `1,2,4`, each once, smallest first.
fn numbers(text: &str) -> Result<Vec<usize>> {
    let parse = |part: &str| part.trim().parse::<usize>().with_context(|| format!("{text:?} is not a list of numbers such as 1,2,4"));
    let mut numbers = text.split(',').map(parse).collect::<Result<Vec<usize>>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// A choice of peers by name, or a file that lists them.
fn peers(text: &str, world: usize) -> Result<Peers> {
    Ok(match text {
        "nearest" => Peers::Nearest,
        "next" => Peers::Next,
        "same_host" => Peers::SameHost,
        "same_switch" => Peers::SameSwitch,
        "cross_host" => Peers::CrossHost,
        path => {
            let file = std::fs::read_to_string(path).with_context(|| {
                format!("--peers: {path:?} is not one of nearest, next, same_host, same_switch, cross_host, and no file that can be read")
            })?;
            Peers::Listed(parse_peers_file(&file, world).with_context(|| format!("--peers {path}"))?)
        }
    })
}

/// A fabric by name, or in a file.
pub fn fabric(text: &str) -> Result<Fabric> {
    if let Some(shipped) = Fabric::shipped(text) {
        return Ok(shipped?);
    }
    let source = std::fs::read_to_string(text).with_context(|| {
        let names: Vec<&str> = Fabric::names().collect();
        format!("--fabric: {text:?} is not one of {}, and no file that can be read", names.join(", "))
    })?;
    // A table of TOML begins with a bracket, too.
    if source.trim_start().starts_with('{') {
        bail!("--fabric: {text}: JSON: expected a fabric (TOML; see `toposcope fabrics`); what was measured goes with --calibration");
    }
    Fabric::parse(&source, text).context("--fabric")
}

/// How many threads to start: what `--ranks` says, or one a core; on memory of GPUs one for each that is named, or that there is.
pub fn threads(args: &SweepArgs, cores: usize) -> Result<usize> {
    let Some(text) = &args.ranks else {
        let named = || args.buffer.gpus.as_deref().map(|gpus| parse_gpus(gpus).len()).filter(|&gpus| gpus > 0);
        let gpus = || named().or_else(|| cuda_devices().ok().map(|devices| devices.len()));
        let gpus = args.buffer.memory.filter(|memory| !memory.memory().is_host()).and_then(|_| gpus());
        return Ok(gpus.map_or(cores.clamp(2, MOST_THREADS), |gpus| gpus.clamp(1, MOST_THREADS)));
    };
    match text.trim().parse::<usize>() {
        Ok(ranks @ 1..=1024) => Ok(ranks),
        _ => bail!("--ranks: {text:?} is not a number of threads between 1 and 1024 (a set such as 0-3 is for MPI jobs)"),
    }
}

fn patterns(text: &str) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for name in text.split(',').map(str::trim) {
        let known = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name);
        let Some(pattern) = known else {
            let names: Vec<_> = Pattern::ALL.iter().map(|pattern| pattern.name()).collect();
            bail!("--patterns: {name:?} is not one of {}", names.join(", "));
        };
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Ok(patterns)
}

pub fn mover(name: &str) -> Result<MoverKind> {
    let Some(mover) = MoverKind::ALL.into_iter().find(|mover| mover.name() == name) else {
        let names: Vec<_> = MoverKind::ALL.iter().map(|mover| mover.name()).collect();
        bail!("--mover: {name:?} is not one of {}", names.join(", "));
    };
    Ok(mover)
}

/// A time such as `10s`, `500ms`, `2m` or a plain number of seconds.
fn seconds(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let (number, scale) = match trimmed {
        t if t.ends_with("ms") => (&t[..t.len() - 2], 1e-3),
        t if t.ends_with('s') => (&t[..t.len() - 1], 1.0),
        t if t.ends_with('m') => (&t[..t.len() - 1], 60.0),
        t => (t, 1.0),
    };
    let value: f64 = number.trim().parse().ok().with_context(|| format!("{text:?} is not a time such as 10s, 500ms or 2m"))?;
    Ok(value * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Transfer;
    use crate::sweep::made::on;

    fn typed(args: &SweepArgs) -> Result<SweepSettings> {
        settings(args, EngineKind::Mpi, &on(&[3]), None)
    }

    #[test]
    fn what_was_typed_wins_over_the_defaults() {
        let args = SweepArgs {
            patterns: Some("peer,local,fan_in,relay,peer".into()),
            sizes: Some("4K..64K".into()),
            ranks: Some("0,2".into()),
            timeout: Some("500ms".into()),
            mover: Some("mpi_put".into()),
            widths: Some("1, 1".into()),
            peers: Some("next".into()),
            shifts: Some("1".into()),
            pairs: Some(1),
            isolated: true,
            budget: Some("2m".into()),
            ..SweepArgs::default()
        };
        let settings = typed(&args).unwrap();
        assert_eq!(settings.patterns, [Pattern::Peer, Pattern::Local, Pattern::FanIn, Pattern::Relay]);
        assert_eq!((settings.sizes.len(), settings.ranks.as_slice()), (3, [0, 2].as_slice()));
        assert!((settings.timeout - 0.5).abs() < 1e-12 && (settings.budget - 120.0).abs() < 1e-12);
        assert_eq!((settings.mover, settings.peers.clone(), settings.widths.clone()), (MoverKind::MpiPut, Peers::Next, vec![1]));
        assert_eq!((settings.pairs, settings.isolated), (1, true));
    }

    fn memory(memory: Option<MemoryArg>, gpus: Option<&str>) -> MemoryArgs {
        MemoryArgs { memory, gpus: gpus.map(str::to_owned) }
    }

    #[test]
    fn gpu_memory_is_moved_by_nccl_unless_something_is_said_and_its_gpus_go_with_it() {
        let of = |buffer: MemoryArgs, mover: Option<&str>| {
            let settings = typed(&SweepArgs { buffer, mover: mover.map(str::to_owned), ..SweepArgs::default() }).unwrap();
            (settings.memory, settings.gpus, settings.mover)
        };
        assert_eq!(of(memory(None, None), None), (Memory::Host, Vec::new(), MoverKind::MpiSendrecv));
        let gpus = vec!["0".to_owned(), "GPU-8f".to_owned()];
        assert_eq!(of(memory(Some(MemoryArg::Cuda), Some("0, GPU-8f")), None), (Memory::Cuda, gpus.clone(), MoverKind::Nccl));
        assert_eq!(of(memory(Some(MemoryArg::Cuda), None), Some("cuda_ipc_pull")).2, MoverKind::CudaIpcPull);
        // A session that is taken up keeps its own; on the host's memory there are no GPUs to name.
        let session = SweepSettings { memory: Memory::Cuda, gpus, mover: MoverKind::NcclPut, ..SweepSettings::default() };
        let resumed = |args: &SweepArgs| settings(args, EngineKind::Mpi, &on(&[3]), Some(session.clone()));
        assert_eq!(resumed(&SweepArgs::default()).unwrap(), session);
        let host = SweepArgs { buffer: memory(Some(MemoryArg::Host), None), mover: Some("mpi_put".into()), ..SweepArgs::default() };
        let host = resumed(&host).unwrap();
        assert_eq!((host.memory, host.gpus), (Memory::Host, Vec::new()));
    }

    #[test]
    fn an_interval_or_a_number_of_repeats_or_both() {
        let of = |ci, repeats| {
            let settings = typed(&SweepArgs { repeats, ci, ..SweepArgs::default() }).unwrap();
            (settings.ci, settings.repeats)
        };
        assert_eq!(of(None, None), (0.05, 40));
        assert_eq!(of(None, Some(7)), (0.0, 7));
        assert_eq!(of(Some(0.01), None), (0.01, 100));
        assert_eq!(of(Some(0.01), Some(30)), (0.01, 30));
        // A session that is taken up keeps its own, unless something is said.
        let session = SweepSettings { ci: 0.02, repeats: 50, ..SweepSettings::default() };
        let resumed = |args: &SweepArgs| settings(args, EngineKind::Mpi, &on(&[3]), Some(session.clone())).unwrap();
        assert_eq!(resumed(&SweepArgs::default()), session);
        assert_eq!(resumed(&SweepArgs { repeats: Some(9), ..SweepArgs::default() }).repeats, 9);
    }

    #[test]
    fn sizes_that_nobody_asked_for_take_a_quarter_of_the_memory_at_most() {
        let largest = |available: u64, args: &SweepArgs| {
            let mut topology = on(&[2, 2]);
            topology.ranks.iter_mut().for_each(|placement| placement.memory_available = available);
            settings(args, EngineKind::Mpi, &topology, None).unwrap().sizes.pop()
        };
        // Two ranks of a host with two arenas each.
        assert_eq!(largest(4 << 30, &SweepArgs::default()), Some(256 << 20));
        assert_eq!(largest((4 << 30) - 1, &SweepArgs::default()), Some(64 << 20));
        // Smaller arenas than of the cache there are none, so there is nothing to win.
        assert_eq!(largest(1 << 20, &SweepArgs::default()), Some(64 << 20));
        // Fans into one rank need more.
        let fans = SweepArgs { patterns: Some("fan_in".into()), widths: Some("3".into()), ..SweepArgs::default() };
        assert_eq!(largest(4 << 30, &fans), Some(64 << 20));
        let asked = SweepArgs { sizes: Some("256M".into()), ..SweepArgs::default() };
        assert_eq!(largest(1 << 20, &asked), Some(256 << 20), "what was asked for is refused, not changed");
    }

    #[test]
    fn files_say_what_runs_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let pattern_file = Some(path("pattern", "0 0 1\n0 1 2\n"));
        let peers_file = path("peers", "0: 1,2\n").display().to_string();
        let args = SweepArgs { pattern_file, peers: Some(peers_file), patterns: Some("fan_out".into()), ..SweepArgs::default() };
        let settings = typed(&args).unwrap();
        assert_eq!(settings.patterns, [Pattern::FanOut, Pattern::Custom]);
        assert_eq!(settings.transfers, [Transfer { set: 0, from: 0, to: 1 }, Transfer { set: 0, from: 1, to: 2 }]);
        assert_eq!(settings.peers, Peers::Listed(vec![(0, vec![1, 2])]));
        let refused = |args: SweepArgs| format!("{:#}", typed(&args).unwrap_err());
        let text = refused(SweepArgs { pattern_file: Some(path("bad", "0 0 1\n0 1 3\n")), ..SweepArgs::default() });
        assert!(text.contains("bad: line 2: to = \"3\": expected a rank of this job, 0 to 2"), "{text}");
        let text = refused(SweepArgs { pattern_file: Some(folder.path().join("none")), ..SweepArgs::default() });
        assert!(text.contains("--pattern-file") && text.contains("none"), "{text}");
        let text = refused(SweepArgs { peers: Some("nobody".into()), ..SweepArgs::default() });
        assert!(text.contains("\"nobody\" is not one of nearest, next,"), "{text}");
        assert_eq!(fabric("laptop").unwrap().name(), "laptop");
        let text = format!("{:#}", fabric("no-such").unwrap_err());
        assert!(text.contains("\"no-such\" is not one of laptop, b70-8"), "{text}");
    }

    #[test]
    fn wrong_words_are_named_with_what_was_expected() {
        let with = SweepArgs::default;
        let cases = [
            (SweepArgs { patterns: Some("pear".into()), ..with() }, "\"pear\" is not one of local, host_to_device, device_to_host, peer"),
            (SweepArgs { sizes: Some("4q".into()), ..with() }, "--sizes"),
            (
                SweepArgs { mover: Some("ncll".into()), ..with() },
                "memcpy, mpi_sendrecv, mpi_put, cuda_ipc_pull, cuda_ipc_push, nccl, nccl_put",
            ),
            (SweepArgs { mover: Some("nccl".into()), ..with() }, "memory = host: mover nccl moves the memory of GPUs: memory cuda"),
            (SweepArgs { buffer: memory(None, Some("0,1")), ..with() }, "gpus = 0,1: memory cuda"),
            (SweepArgs { buffer: memory(Some(MemoryArg::Cuda), Some("0,,1")), ..with() }, "\"\" is no GPU: expected CUDA's number"),
            (SweepArgs { buffer: memory(Some(MemoryArg::Cuda), Some("0,one")), ..with() }, "\"one\" is no GPU: expected CUDA's number"),
            (SweepArgs { timeout: Some("soon".into()), ..with() }, "--timeout"),
            (SweepArgs { budget: Some("little".into()), ..with() }, "--budget"),
            (SweepArgs { widths: Some("1,x".into()), ..with() }, "--widths: \"1,x\" is not a list"),
            (SweepArgs { patterns: Some("fan_in".into()), widths: Some("1,3".into()), ..with() }, "widths = 3: a root has 2 others"),
            (SweepArgs { patterns: Some("custom".into()), ..with() }, "--pattern-file FILE"),
            (SweepArgs { ci: Some(1.5), ..with() }, "ci = 1.5"),
            (SweepArgs { repeats: Some(0), ..with() }, "repeats = 0"),
        ];
        for (args, expected) in cases {
            let error = format!("{:#}", typed(&args).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        assert!(threads(&SweepArgs { ranks: Some("0-3".into()), ..SweepArgs::default() }, 4).is_err());
    }
}
