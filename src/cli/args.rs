//! The command line exactly as typed; [`super::settings`] makes it ready to use.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::Config;
use crate::sample::Memory;

/// Interactive topology exploration and link calibration for MPI jobs.
#[derive(Debug, Parser)]
#[command(name = "toposcope", version, about, after_help = AFTER, arg_required_else_help = false)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Write every setting with its default and what it means, as a `config.toml` to start from
    #[arg(long)]
    pub print_config: bool,
    #[command(subcommand)]
    pub command: Option<Commands>,
}

const AFTER: &str = "\
Without a command the screen opens: on this machine with threads as ranks, or, under `mpirun -n N toposcope`, with the job's processes.

Exit codes:
  0  done as asked
  1  something was found or has changed (diagnose, diff, sessions compare), was not measured as asked (sweep, scenarios: timed out, \
waived, lost ranks), a check failed (replay --execute), or the person said no (sessions delete)
  2  wrong input or environment: an option, a file, a setting, a missing library

Settings: an option goes before the environment (TOPOSCOPE_THEME, TOPOSCOPE_SWEEP_SIZES, NO_COLOR), that before config.toml (in \
$XDG_CONFIG_HOME/toposcope or ~/.config/toposcope), that before the default; --print-config writes all of them.";

#[derive(Debug, Args)]
pub struct Global {
    /// Folder of the session (default: a new one below `$XDG_DATA_HOME/toposcope/sessions`)
    #[arg(long, global = true, value_name = "DIR")]
    pub session: Option<PathBuf>,
    /// Theme of the screen; see `toposcope themes`
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Colours of the screen (default: auto, what the terminal can show)
    #[arg(long, global = true, value_enum)]
    pub color: Option<Color>,
    /// Efficiencies of links, which expected rates are made with: lines such as pcie = 0.86 (default:
    /// `$XDG_CONFIG_HOME/toposcope/efficiency.toml` over the shipped table; see `toposcope doctor`)
    #[arg(long, global = true, value_name = "FILE")]
    pub efficiency: Option<PathBuf>,
    /// this person's own settings
    #[arg(skip)]
    pub config: Config,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Truecolor,
    #[value(name = "256")]
    Ansi256,
    #[value(name = "16")]
    Ansi16,
    None,
}

#[derive(Debug, Clone, Default, Args)]
pub struct SweepArgs {
    /// Who the ranks are (default: mpi under an MPI launcher, sim with --fabric, else threads)
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// Number of ranks of the threads engine (default: one a core, or with --memory cuda one a GPU, at most 16), or the ranks to
    /// measure, such as 0-3,7
    #[arg(long, value_name = "N|SET")]
    pub ranks: Option<String>,
    /// Measure a group of the job's ranks as if there were no others: they are numbered from 0 in it, such as 0-7
    #[arg(long, value_name = "SET")]
    pub group: Option<String>,
    /// A described fabric: what the sim engine simulates, and for other engines what may be measured at the same time; a name
    /// (see `toposcope fabrics`) or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub fabric: Option<String>,
    /// Patterns to measure: local, peer, duplex, `fan_out`, `fan_in`, relay, custom; of GPUs `host_to_device`, `device_to_host`
    #[arg(
        long,
        value_name = "LIST",
        help = "Patterns to measure: local, peer, duplex, fan_out, fan_in, relay, custom; of GPUs host_to_device, device_to_host [default: local,peer]"
    )]
    pub patterns: Option<String>,
    /// Message sizes: a list or a range in steps of 4, such as 4KiB..64MiB or 1M,16M (default: 4KiB..256MiB, or up to what
    /// fits a quarter of the memory)
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<String>,
    /// Numbers of peers of a fan, such as 1,2,4 (default: the ranks of a host minus one)
    #[arg(long, value_name = "LIST")]
    pub widths: Option<String>,
    /// Peers of a fan's root: nearest, next, `same_host`, `same_switch`, `cross_host`, or a file with lines such as 0: 1,2,3
    #[arg(
        long,
        value_name = "CHOICE|FILE",
        help = "Peers of a fan's root: nearest [default], next, same_host, same_switch, cross_host, or a file with lines such as 0: 1,2,3"
    )]
    pub peers: Option<String>,
    /// Distances of a relay, such as 1,2 (default: 1)
    #[arg(long, value_name = "LIST")]
    pub shifts: Option<String>,
    /// Transfers of your own, those of a set at the same time: lines of set,from,to, or a CSV file with these columns
    #[arg(long, value_name = "FILE")]
    pub pattern_file: Option<PathBuf>,
    /// Measure so many pairs of each rank, chosen by the seed, instead of all
    #[arg(long, value_name = "K")]
    pub pairs: Option<usize>,
    /// One probe at a time, never several that do not disturb each other
    #[arg(long)]
    pub isolated: bool,
    /// Timed repeats for each pair and size: exactly, or with --ci at most; 6 or more give an interval
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Repeat until half the median's 95 % interval is within this share of it (default: 0.05, with at most 40 repeats)
    #[arg(long, value_name = "SHARE")]
    pub ci: Option<f64>,
    /// Longest time for all of it, such as 60s; everything gets a first value in any case
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Untimed repeats before the timed ones of each probe
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Messages outstanding at a time; 1 measures single messages
    #[arg(long, value_name = "N")]
    pub window: Option<u32>,
    /// Seed of the order of probes and of the payload
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Longest time of one probe, such as 10s or 500ms
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// How bytes travel: memcpy (threads), `mpi_sendrecv`, `mpi_put`, `cuda_ipc_pull`, `cuda_ipc_push`, nccl or `nccl_put` (mpi), simulated (sim)
    #[arg(
        long,
        value_name = "NAME",
        help = "How bytes travel: memcpy (threads); mpi_sendrecv, mpi_put, cuda_ipc_pull, cuda_ipc_push, nccl, nccl_put (mpi; the last four \
                with --memory cuda); simulated (sim)"
    )]
    pub mover: Option<String>,
    #[command(flatten)]
    pub buffer: MemoryArgs,
    /// rotate: messages from cold memory; reuse: the same buffers again, as most micro-benchmarks do
    #[arg(long, value_enum)]
    pub buffers: Option<BuffersArg>,
    /// Size of each rank's send and receive arena (default: by the last-level cache)
    #[arg(long, value_name = "SIZE")]
    pub arena: Option<String>,
    /// A plan, a list of flows or another tool's plan, or scenario:NAME, for the Replay tab and to be run from there; repeatable
    #[arg(long = "plan", value_name = "FILE")]
    pub plans: Vec<PathBuf>,
    /// Take up a session that was cut: its settings, and what it has not measured yet
    #[arg(long, value_name = "SESSION")]
    pub resume: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    Threads,
    Mpi,
    /// a described fabric (--fabric) on a clock of its own
    Sim,
}

/// Where buffers lie.
#[derive(Debug, Clone, Default, Args)]
pub struct MemoryArgs {
    /// Where the measured buffers lie: the host's memory, or that of the GPU which each rank is bound to
    #[arg(long, value_enum)]
    pub memory: Option<MemoryArg>,
    /// With --memory cuda: the GPU of each rank of a host, in their order: CUDA numbers, UUIDs or PCI addresses, such as 0,1,3; one
    /// that is named twice is shared (default: each rank's number on its host)
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    Host,
    Cuda,
}

impl MemoryArg {
    pub const fn of(memory: Memory) -> Self {
        match memory {
            Memory::Host => Self::Host,
            Memory::Cuda => Self::Cuda,
        }
    }

    pub const fn memory(self) -> Memory {
        match self {
            Self::Host => Memory::Host,
            Self::Cuda => Memory::Cuda,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BuffersArg {
    Rotate,
    Reuse,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, once")]
pub enum Commands {
    /// Start an MPI job with the flags that it needs, and watch over the terminal
    Run(RunArgs),
    /// Open a screen on a running job
    Attach {
        /// Socket of the job (default: the only one of yours on this host)
        socket: Option<PathBuf>,
    },
    /// Open a recorded session, with the time slider, a calibration, or what another tool measured; without one, choose among your sessions
    Open {
        /// Folder of a session, its name (see `toposcope sessions`), a calibration, or another tool's file
        #[arg(value_name = "NAME|DIR|CAL|FILE")]
        session: Option<PathBuf>,
        /// Another session or calibration: the screen shows what changed since
        #[arg(long, value_name = "SESSION|CAL")]
        against: Option<PathBuf>,
        /// A plan, a list of flows or another tool's plan, for the Replay tab; repeatable
        #[arg(long = "plan", value_name = "FILE")]
        plans: Vec<PathBuf>,
    },
    /// Tell what every rank sits on, and what its host is made of
    Discover {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Tell of a recorded tree instead, and start no ranks: a folder that holds the sys and proc of a machine, such as
        /// hwloc-gather-topology --io records
        #[arg(long, value_name = "DIR")]
        sysfs_root: Option<PathBuf>,
        /// Tell instead what other tools' files tell: nvidia-smi topo -m, topo -p2p or nvlink -s, NCCL or hwloc XML, logs of NCCL, lspci, ibstat,
        /// ibdev2netdev; several of one host are put together
        #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sysfs_root")]
        from: Vec<PathBuf>,
    },
    /// Measure without a screen
    Sweep {
        #[command(flatten)]
        sweep: Box<SweepArgs>,
        /// Calibration to write
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print the summary as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a session or a calibration as a calibration, a table or a picture
    Export {
        /// Folder of a session, a calibration, or another tool's output that `import` reads
        #[arg(value_name = "SESSION|CAL|FILE")]
        session: PathBuf,
        #[arg(long, value_enum)]
        format: Format,
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Tab of the picture: topology, sweep, matrix, fits, fans, findings, replay or session
        #[arg(long, default_value = "matrix")]
        tab: String,
        /// Metric of the picture: bandwidth, `share_of_expected`, time, asymmetry, duplex (ratio), spread, or change (with --against)
        #[arg(long, default_value = "bandwidth")]
        metric: String,
        /// Another session or calibration: the picture shows what changed since
        #[arg(long, value_name = "SESSION|CAL")]
        against: Option<PathBuf>,
        /// A plan, a list of flows or another tool's plan, for the Replay tab of the picture; of several the last is shown, beside the
        /// one before it
        #[arg(long = "plan", value_name = "FILE")]
        plans: Vec<PathBuf>,
        /// Message size of the picture (default: the largest that all pairs have)
        #[arg(long)]
        size: Option<String>,
        /// Part of the matrix in the picture: a rank, a host, a rack or two of them, such as host012:host031 or 96:248
        #[arg(long, value_name = "HOST:HOST|RANKS")]
        zoom: Option<String>,
        /// Order of the matrix in the picture: rank, topology or slowness (slowest first)
        #[arg(long, default_value = "rank")]
        order: String,
        /// What stands for a block of pairs in the picture: worst, min, max or mean
        #[arg(long, default_value = "worst")]
        reduce: String,
        /// Size of the picture in characters
        #[arg(long, value_name = "WxH", default_value = "120x34")]
        cells: String,
        /// Chunk that the costs of a TACCL profile are of
        #[arg(long, value_name = "SIZE", default_value = "1MiB")]
        chunk: String,
    },
    /// Make a session of what other tools measured: nvbandwidth, nccl-tests, mpiGraph, OSU and others, with topologies given along
    Import(super::import::ImportArgs),
    /// Print the fits of a session or a calibration: every class, rank, pair, fan and relay
    Fit {
        /// Folder of a session, a calibration, or another tool's output that `import` reads
        #[arg(value_name = "SESSION|CAL|FILE")]
        source: PathBuf,
        /// Print JSON: an array of objects, α in µs, GB/s
        #[arg(long)]
        json: bool,
        /// Every row, however many there are
        #[arg(long)]
        all: bool,
    },
    /// Tell what stands out in a session or a calibration: where, how much, why, and the test that would tell. Exit code 1 where
    /// something is slower than it should be
    Diagnose(DiagnoseArgs),
    /// Tell what changed beyond noise from one session or calibration to another. Exit code 1 where something did
    Diff {
        /// The earlier one: folder of a session, a calibration, or another tool's output that `import` reads
        #[arg(value_name = "SESSION|CAL|FILE")]
        before: PathBuf,
        /// The later one
        #[arg(value_name = "SESSION|CAL|FILE")]
        after: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Write a picture of all pairs, after over before
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Transfer plans: what must be copied so that one layout of a model becomes another
    Plan {
        #[command(subcommand)]
        what: super::plan::PlanCommands,
    },
    /// Rank the ways to bring a model from trainers to engines: predicted time, what binds each, and what would change the ranking
    Strategies(super::strategies::StrategiesArgs),
    /// Predict what plans take: time, what binds, load of every resource; several are compared
    Replay(super::replay::ReplayArgs),
    /// List the benchmark scenarios, or run them on the ranks: pairs, fans, rings, weight syncs, incast, in tables by method
    Scenarios(super::scenarios::ScenariosArgs),
    /// List your recorded sessions, or rename, note, delete or compare them. A name that it lists, or `last`, stands for the session
    /// wherever a command reads one
    Sessions(super::sessions::SessionsArgs),
    /// List the fabrics that come with the program, or print one to start a file of your own from
    Fabrics {
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What this build and this machine can do, and how to get what is absent
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the key table
    Keys {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the themes
    Themes {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of a file that this program writes
    Schema {
        #[arg(value_enum)]
        of: SchemaOf,
    },
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the man page, or write one for each command into a folder
    Man {
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Watches over the terminal of a rank 0; started by it
    #[command(hide = true)]
    Guard,
}

#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Folder of a session, a calibration, or another tool's output that `import` reads
    #[arg(value_name = "SESSION|CAL|FILE")]
    pub source: PathBuf,
    /// Print JSON, with the samples behind every fact
    #[arg(long)]
    pub json: bool,
    /// Exit code 1 for notes, too
    #[arg(long)]
    pub strict: bool,
    /// Tell also of alarms that were not raised, with the reason, and of every resource
    #[arg(long)]
    pub all: bool,
    /// Write the report, too: .html for the whole of it in one page, .md for a ticket
    #[arg(long, value_name = "FILE.html|FILE.md")]
    pub report: Option<PathBuf>,
    /// First run the tests that decide, at most so many, on the ranks that the session was measured with, and add them to it
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub run_tests: Option<usize>,
    /// With --run-tests: the fabric of a simulated session, where it does not name its own
    #[arg(long, value_name = "NAME|FILE", requires = "run_tests")]
    pub fabric: Option<String>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Number of ranks
    #[arg(short = 'n', long = "np", value_name = "N", value_parser = parse_np)]
    pub np: usize,
    /// Hosts, as the launcher takes them: a,b or a:2,b:2
    #[arg(short = 'H', long, value_name = "HOSTS")]
    pub hosts: Option<String>,
    /// mpirun, srun or the path of a launcher (default: the first one found)
    #[arg(long, value_name = "NAME|PATH")]
    pub launcher: Option<String>,
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Further arguments for the launcher
    #[arg(last = true)]
    pub launcher_args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Calibration,
    /// raw samples with the field names of `DeepSpeed`'s affine-transfer calibration
    Deepspeed,
    /// a topology profile for TACCL: α and β of one chunk, µs
    Taccl,
    /// every fit as a JSON array
    Fits,
    /// every fit as a table
    FitsCsv,
    Csv,
    Svg,
    /// the same picture in pixels
    Png,
    /// the report of `toposcope diagnose` for a ticket: short, findings first
    Markdown,
    /// the whole report as one page that needs nothing else
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    Calibration,
    Fits,
    Diagnosis,
    Header,
    Event,
    /// a batch of transfer plans
    Plan,
    /// flows between ranks, in stages
    Traffic,
    /// what `toposcope scenarios run --json` prints
    Scenarios,
    /// what `toposcope sessions --json` prints
    Sessions,
    /// what `toposcope themes --json` prints
    Themes,
    /// what `toposcope keys --json` prints
    Keys,
    /// what `toposcope fabrics --json` prints
    Fabrics,
    /// what `toposcope doctor --json` prints
    Doctor,
    /// what `toposcope discover --json` prints
    Placement,
    /// what `toposcope sweep --json` prints
    Sweep,
    /// what `toposcope diff --json` and `sessions compare --json` print
    Changes,
    /// what `toposcope scenarios --json` prints
    ScenariosList,
    /// what `toposcope replay --json` prints
    Prices,
    /// what `toposcope strategies --json` prints
    Strategies,
    /// what `toposcope plan schedule --json` prints
    Schedule,
    /// what `toposcope plan build --json` prints
    Built,
    /// what `toposcope replay --execute --json` prints
    Executions,
}

/// Open MPI takes 0 for as many as there are slots.
fn parse_np(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&ranks| ranks > 0).ok_or_else(|| "expected a number of ranks, at least 1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
