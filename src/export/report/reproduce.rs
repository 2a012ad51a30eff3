//! The command that measures the same again.

use crate::sample::{EngineKind, Memory};
use crate::session::{Imported, Model};
use crate::sweep::{Buffers, Peers};
use crate::units::{format_ranks, plain};

/// What to type, one line; and what the line can't say, in sentences.
pub fn reproduce(model: &Model) -> (String, Vec<String>) {
    if model.header.engine == EngineKind::Imported {
        let of =
            |table: &Imported| format!("{} wrote these numbers: read from {}, {}", plain(&table.name()), plain(&table.file), table.means());
        let told = model.imported.iter().filter(|table| table.taken || table.samples == 0).map(of);
        return ("mpirun -n RANKS toposcope sweep".to_owned(), told.collect());
    }
    let settings = model.sweep.as_ref().map_or(&model.header.settings, |sweep| &sweep.settings);
    let world = model.world();
    let mut words = match model.header.engine {
        EngineKind::Mpi => vec!["mpirun".to_owned(), "-n".to_owned(), world.to_string(), "toposcope".to_owned(), "sweep".to_owned()],
        EngineKind::Threads => {
            ["toposcope", "sweep", "--engine", "threads", "--ranks"].map(str::to_owned).into_iter().chain([world.to_string()]).collect()
        }
        EngineKind::Imported | EngineKind::Sim => ["toposcope", "sweep", "--engine", "sim", "--fabric"]
            .map(str::to_owned)
            .into_iter()
            .chain([quoted(model.header.simulated().unwrap_or("FILE"))])
            .collect(),
    };
    let mut beware = Vec::new();
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), quoted(&value)]);
    let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    add("patterns", settings.patterns.iter().map(|pattern| pattern.name()).collect::<Vec<_>>().join(","));
    add("sizes", settings.sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
    if !settings.ranks.is_empty() && model.header.engine != EngineKind::Threads {
        add("ranks", format_ranks(&settings.ranks));
    }
    if !model.header.group.is_empty() {
        beware.push(format!("The ranks were rank {} of a larger job (--group).", format_ranks(&model.header.group)));
    }
    if !settings.widths.is_empty() {
        add("widths", list(&settings.widths));
    }
    if settings.shifts != [1] && !settings.shifts.is_empty() {
        add("shifts", list(&settings.shifts));
    }
    match &settings.peers {
        Peers::Nearest => {}
        Peers::Next => add("peers", "next".to_owned()),
        Peers::SameHost => add("peers", "same_host".to_owned()),
        Peers::SameSwitch => add("peers", "same_switch".to_owned()),
        Peers::CrossHost => add("peers", "cross_host".to_owned()),
        Peers::Listed(_) => beware.push("Peers of fans came from a file (--peers FILE).".to_owned()),
    }
    if !settings.transfers.is_empty() {
        beware.push("Transfers came from a file (--pattern-file FILE).".to_owned());
    }
    if settings.pairs > 0 {
        add("pairs", settings.pairs.to_string());
    }
    add("repeats", settings.repeats.to_string());
    if settings.ci > 0.0 {
        add("ci", settings.ci.to_string());
    }
    if settings.budget > 0.0 {
        add("budget", format!("{}s", settings.budget));
    }
    add("warmup", settings.warmup.to_string());
    add("window", settings.window.to_string());
    add("seed", settings.seed.to_string());
    add("timeout", format!("{}s", settings.timeout));
    if model.header.engine == EngineKind::Mpi {
        add("mover", settings.mover.name().to_owned());
    }
    if settings.memory == Memory::Cuda {
        add("memory", "cuda".to_owned());
    }
    if !settings.gpus.is_empty() {
        add("gpus", settings.gpus.join(","));
    }
    if settings.buffers == Buffers::Reuse {
        add("buffers", "reuse".to_owned());
    }
    if settings.arena > 0 {
        add("arena", settings.arena.to_string());
    }
    if settings.isolated {
        words.push("--isolated".to_owned());
    }
    if model.header.engine == EngineKind::Mpi && model.header.topology.hosts().len() > 1 {
        beware.push("The ranks were spread over hosts as Topology tells: give the launcher the same hosts.".to_owned());
    }
    (words.join(" "), beware)
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let word = plain(word);
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ',' | '/' | ':' | '=' | '+' | '%');
    if !word.is_empty() && word.chars().all(harmless) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
