//! OSU micro-benchmarks: sizes of one pair, or of many pairs together. Megabytes are 1e6 bytes (`util/osu_util.h`: `tmp = size / 1e6`).
//! The output names no host: rank 0 sends to rank 1.

use super::dispatch::MOST_ENDS;
use super::rows::{MB, Step, block, both, misshapen, rank, rated, size, timed};
use super::{Collective, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern, Status};

/// What a title says that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// one way, or the other for gets
    Bandwidth {
        gets: bool,
    },
    /// the sum of both ways at once
    Both,
    Latency {
        gets: bool,
    },
    /// all pairs together: the sum
    Pairs,
    /// all pairs together: the mean
    PairsLatency,
    Other,
}

impl Kind {
    fn of(title: &str) -> Self {
        let title = title.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
        let gets = has(&["get"]);
        if has(&["bi-directional", "bidirectional"]) {
            Self::Both
        } else if has(&["multiple bandwidth"]) {
            Self::Pairs
        } else if has(&["bandwidth"]) {
            Self::Bandwidth { gets }
        } else if has(&["multi latency", "multi-latency", "multi pair latency"]) {
            Self::PairsLatency
        } else if has(&["latency"]) && Self::is_of_a_pair(&title) {
            Self::Latency { gets }
        } else {
            Self::Other
        }
    }

    /// Titles of collectives end in `Latency Test` too.
    fn is_of_a_pair(title: &str) -> bool {
        let plain = |word: &str| {
            word.starts_with("mpi")
                || matches!(
                    word,
                    "osu" | "nccl" | "rccl" | "one" | "sided" | "multi-threaded" | "multi-process" | "persistent" | "put" | "get"
                )
        };
        title.split_whitespace().take_while(|word| *word != "latency").all(plain)
    }

    /// The program that writes it, where its name is no other's.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Bandwidth { gets: false } => Some("osu_bw"),
            Self::Both => Some("osu_bibw"),
            Self::Latency { gets: false } => Some("osu_latency"),
            Self::Pairs => Some("osu_mbw_mr"),
            Self::PairsLatency => Some("osu_multi_lat"),
            _ => None,
        }
    }
}

struct Draft {
    kind: Kind,
    test: String,
    version: Option<String>,
    memory: Memory,
    mixed: bool,
    /// at the same time, where it is told
    pairs: Option<u64>,
    datatype: Option<String>,
    tables: Vec<Table>,
    /// words of a row of the table at hand, once one is there
    width: Option<usize>,
    /// the header was one that is not known
    deaf: bool,
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let title = first.text.trim().strip_prefix("# OSU ")?;
    let (name, version) =
        title.rsplit_once(" v").filter(|(_, version)| version.starts_with(|char: char| char.is_ascii_digit())).unwrap_or((title, ""));
    let kind = Kind::of(name);
    let on_gpus = ["CUDA", "ROCM", "NCCL", "RCCL", "OPENACC", "SYCL"].iter().any(|word| name.contains(word));
    let one_sided = name.contains("MPI_") || name.contains("One Sided") || name.contains("SHMEM") || name.contains("UPC");
    let mut draft = Draft {
        kind,
        test: kind.name().filter(|_| !one_sided).map_or_else(|| named(&format!("OSU {name}")), str::to_owned),
        version: (!version.is_empty()).then(|| named(version)),
        memory: if on_gpus { Memory::Cuda } else { Memory::Host },
        mixed: false,
        pairs: None,
        datatype: None,
        tables: Vec::new(),
        width: None,
        deaf: false,
    };
    let used = block(lines, skips, |line, skips| if line.number == first.number { Step::Mine } else { draft.line(line, skips) });
    if kind == Kind::Other {
        skips.push(first.number, format!("{} is of no pair of ranks: no rate of a link is in it", shown(title)));
    } else if draft.tables.is_empty() && !draft.deaf {
        skips.push(first.number, format!("{} is not followed by rows of sizes", shown(title)));
    }
    draft.tables.retain(|table| !table.samples.is_empty() || !table.collectives.is_empty());
    Some((draft.tables, used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, skips: &mut Skips) -> Step {
        let text = line.text.trim();
        if let Some(comment) = text.strip_prefix('#') {
            return self.comment(comment.trim(), line, skips);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(bytes) = words.first().and_then(|word| size(word)) else { return Step::Strange };
        if self.kind == Kind::Other || self.deaf {
            return Step::Mine;
        }
        if self.tables.is_empty() {
            return Step::Strange;
        }
        let width = *self.width.get_or_insert(words.len());
        let number = words.get(1).and_then(|word| amount(word));
        let Some(number) = number.filter(|_| words.len() == width) else {
            skips.push(line.number, misshapen(text, width.max(2)));
            return Step::Mine;
        };
        self.row((bytes, number), words.contains(&"Fail"), line.number, skips);
        Step::Mine
    }

    fn comment(&mut self, comment: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let lower = comment.to_ascii_lowercase();
        if let Some(datatype) = comment.strip_prefix("Datatype:") {
            self.datatype = Some(named(datatype.trim().trim_end_matches('.'))).filter(|datatype| datatype != "MPI_CHAR");
        } else if lower.starts_with("size") {
            self.header(comment, line, skips);
        } else if lower.contains("buffer on") {
            let host = lower.matches("on host").count();
            self.mixed = host == 1;
            self.memory = if host == 2 || host == 1 { Memory::Host } else { Memory::Cuda };
        } else if let Some(pairs) = super::rows::value(comment, "pairs") {
            self.pairs = size(pairs).filter(|pairs| (1..MOST_ENDS as u64).contains(pairs));
        } else if lower.starts_with("uni-directional bandwidth") {
            self.deaf = true;
            skips.push(line.number, "a table of window sizes: its columns are no sizes of messages, and it is left out");
        } else if lower.starts_with("osu") || lower.starts_with("benchmarking") || lower.starts_with("nthread") {
            return Step::End;
        } else {
            // Window creation, synchronisation, a table's windows: comments all the same.
            return if self.deaf || lower.starts_with("window") || lower.starts_with("synchron") { Step::Mine } else { Step::Strange };
        }
        Step::Mine
    }

    fn header(&mut self, comment: &str, line: Line<'_>, skips: &mut Skips) {
        self.width = None;
        self.deaf = false;
        let rates = comment.contains("MB/s");
        let times = comment.contains("us)") || comment.contains("(us");
        let wants_rates = !matches!(self.kind, Kind::Latency { .. } | Kind::PairsLatency);
        if self.kind == Kind::Other {
            return;
        }
        if if wants_rates { !rates } else { !times } {
            self.deaf = true;
            skips.push(
                line.number,
                format!("{} has no column in {}: the table is left out", shown(comment), if wants_rates { "MB/s" } else { "us" }),
            );
            return;
        }
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(text.to_owned());
        if self.mixed {
            note("one buffer lies on the host, one on a GPU");
        }
        let together = self.is_together();
        match self.kind {
            Kind::Both => note("the sum of both directions, half of it for each"),
            Kind::Latency { .. } | Kind::PairsLatency if !together => note("half of a round trip: the mean of both directions"),
            _ if together => {
                let pairs = self.pairs.map_or_else(|| "pairs, nobody tells how many,".to_owned(), |pairs| format!("{pairs} pairs"));
                note(&match self.kind {
                    Kind::Pairs => format!("{pairs} at the same time: the rate is the sum of all, and no link's"),
                    _ => format!("{pairs} at the same time: half of a round trip, the mean of all"),
                });
            }
            _ => {}
        }
        let ends = match self.pairs.filter(|_| together) {
            Some(pairs) => vec![super::rows::end(&format!("ranks 0 to {}", 2 * pairs - 1))],
            None if together => Vec::new(),
            None => vec![rank(0), rank(1)],
        };
        let orientation = match self.kind {
            Kind::Both => "both ways at the same time",
            Kind::Bandwidth { gets: true } | Kind::Latency { gets: true } => "rank 0 gets from rank 1",
            Kind::PairsLatency if together => "there and back, between the lower half of the ranks and the upper",
            _ if together => "the lower half of the ranks sends to the upper",
            Kind::Latency { .. } | Kind::PairsLatency => "there and back, between rank 0 and rank 1",
            _ => "rank 0 sends to rank 1",
        };
        let table = Table {
            tool: Tool::Osu,
            test: self.datatype.as_ref().map_or_else(|| self.test.clone(), |datatype| format!("{} of {datatype}", self.test)),
            version: self.version.clone(),
            line: line.number,
            unit: if wants_rates { "MB/s (1e6 bytes)" } else { "µs" },
            orientation,
            size_from: SizeFrom::Told,
            memory: self.memory,
            ends,
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        };
        table.keep(&mut self.tables, skips);
    }

    /// True if the numbers are of several pairs, or of who knows how many.
    fn is_together(&self) -> bool {
        matches!(self.kind, Kind::Pairs | Kind::PairsLatency) && self.pairs != Some(1)
    }

    fn row(&mut self, (bytes, number): (u64, f64), corrupt: bool, line: usize, skips: &mut Skips) {
        let together = self.is_together();
        let Some(table) = self.tables.last_mut() else { return };
        if bytes == 0 {
            // No rate can be told of it; the next size tells nearly the same time.
            table.notes.push(format!("a message of 0 bytes, {number} µs, is no sample"));
            return;
        }
        let before = table.samples.len();
        match self.kind {
            Kind::Both => {
                both(table, bytes, if number > 0.0 { bytes as f64 / (number / 2.0 * MB) } else { 0.0 }, line, skips);
            }
            _ if together => {
                let latency = self.kind == Kind::PairsLatency;
                // A message of each pair; of unknown pairs one of all.
                let seconds = if latency { number * 1e-6 } else { bytes as f64 * self.pairs.unwrap_or(1) as f64 / (number * MB) };
                if seconds.is_finite() && seconds > 0.0 {
                    let sum = (!latency).then_some(number * MB);
                    table.collectives.push(Collective { bytes, seconds, in_place_seconds: None, bus_bandwidth: None, sum });
                }
            }
            Kind::Latency { .. } | Kind::PairsLatency => {
                let pair = if self.kind == (Kind::Latency { gets: true }) { (1, 0) } else { (0, 1) };
                let sample = timed(&table.ends, Pattern::Peer, pair, bytes, number * 1e-6);
                table.put(sample, line, skips);
            }
            Kind::Bandwidth { gets } => {
                let pair = if gets { (1, 0) } else { (0, 1) };
                let sample = rated(&table.ends, Pattern::Peer, pair, bytes, number * MB);
                table.put(sample, line, skips);
            }
            _ => {
                let sample = rated(&table.ends, Pattern::Peer, (0, 1), bytes, number * MB);
                table.put(sample, line, skips);
            }
        }
        if corrupt {
            for sample in &mut table.samples[before..] {
                sample.status = if sample.seconds.is_some() { Status::Corrupt } else { sample.status };
                sample.reason = Some("the tool's check of the payload failed".to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;

    const THREE: &str = "# OSU MPI-CUDA Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)        Validation\n\
        1                       0.16              Pass\nlibfabric: a warning\n4096                 2000.00              Fail\n8192                 oops\n\n\
        # OSU MPI Bi-Directional Bandwidth Test v5.7.1\n# Size      Bandwidth (MB/s)\n1048576             3000.00\n\
        # OSU MPI Latency Test v5.7.1\n# Size          Latency (us)\n0                      17.23\n8                      20.00\n";

    #[test]
    fn each_test_is_a_table_with_its_unit() {
        let (found, skipped) = tables(read, THREE);
        let told: Vec<_> = found.iter().map(|table| (table.test.as_str(), table.unit, table.line, table.memory)).collect();
        assert_eq!(
            told,
            [
                ("osu_bw", "MB/s (1e6 bytes)", 3, Memory::Cuda),
                ("osu_bibw", "MB/s (1e6 bytes)", 10, Memory::Host),
                ("osu_latency", "µs", 13, Memory::Host)
            ]
        );
        near(rate(&found[0], 0, 1), 0.16e6);
        let status: Vec<_> = found[0].samples.iter().map(|sample| sample.status).collect();
        assert_eq!(status, [Status::Ok, Status::Corrupt]);
        near(rate(&found[1], 0, 1), 1.5e9);
        near(rate(&found[1], 1, 0), 1.5e9);
        assert!(found[1].samples.iter().all(|sample| sample.pattern == Pattern::Duplex && sample.both_ways));
        near(found[2].samples[0].seconds.unwrap(), 20e-6);
        assert_eq!((found[2].samples.len(), found[2].samples[0].bytes), (1, 8));
        assert!(found[2].notes.iter().any(|note| note.contains("17.23")), "{:?}", found[2].notes);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn gets_go_the_other_way() {
        let text = "# OSU MPI_Get Bandwidth Test v7.3\n# Window creation: MPI_Win_allocate\n# Synchronization: MPI_Win_flush\n# Size Bandwidth (MB/s)\n64 5.00\n";
        let (found, _) = tables(read, text);
        assert_eq!((found[0].samples[0].from, found[0].samples[0].to, found[0].orientation), (1, 0, "rank 0 gets from rank 1"));
        assert_eq!(found[0].test, "OSU MPI_Get Bandwidth Test");
    }

    #[test]
    fn several_pairs_are_told_together() {
        let text = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n# [ pairs: 4 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s\n1000              4000.00        4000000.00\n";
        let (found, _) = tables(read, text);
        let ends = |table: &Table| table.ends.iter().map(|end| end.label.clone()).collect::<Vec<_>>();
        assert_eq!((found[0].samples.len(), ends(&found[0])), (0, vec!["ranks 0 to 7".to_owned()]));
        near(found[0].collectives[0].seconds, 1e-6);
        // A bus bandwidth is what a link would show; this is the sum of four.
        assert_eq!((found[0].collectives[0].bus_bandwidth, found[0].collectives[0].sum), (None, Some(4e9)));
        assert!(found[0].notes.iter().any(|note| note.contains("4 pairs")), "{:?}", found[0].notes);
        let (found, _) = tables(read, &text.replace("pairs: 4", "pairs: 1"));
        near(rate(&found[0], 0, 1), 4e9);
        // How many pairs there were is lost: of no pair, and of nobody knows how many ranks.
        let (found, _) = tables(read, &text.replace("pairs: 4", "pears: 4"));
        assert_eq!((found[0].samples.len(), ends(&found[0]).len(), found[0].collectives.len()), (0, 0, 1));
    }

    #[test]
    fn latencies_of_several_pairs_are_of_no_pair() {
        let text = "# OSU MPI Multi Latency Test v5.9\n# Size          Latency (us)\n8 2.00\n";
        let (found, _) = tables(read, text);
        assert_eq!((found[0].samples.len(), found[0].ends.len(), found[0].collectives.len()), (0, 0, 1));
        near(found[0].collectives[0].seconds, 2e-6);
        let (found, _) = tables(read, &text.replace("# Size", "# [ pairs: 2 ]\n# Size"));
        assert_eq!((found[0].ends[0].label.as_str(), found[0].collectives[0].sum), ("ranks 0 to 3", None));
        let (found, _) = tables(read, &text.replace("# Size", "# [ pairs: 1 ]\n# Size"));
        assert_eq!((found[0].samples.len(), found[0].collectives.len()), (1, 0));
    }

    #[test]
    fn what_is_of_no_pair_is_told() {
        let (found, skipped) =
            tables(read, "# OSU MPI Allreduce Latency Test v7.0\n# Size  Avg Latency(us)\n4 1.00\n# OSU MPI Latency Test v7\n");
        assert_eq!(found, []);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [1, 4]);
        let text = "# OSU MPI Bandwidth Test v7.0\n# Size  Bandwidth (GiB/s)\n4 1.00\n";
        assert!(tables(read, text).1[0].1.contains("no column"), "{:?}", tables(read, text).1);
        assert_eq!(tables(read, "# OSUX\n 1 2\n"), (vec![], vec![]));
    }

    #[test]
    fn rows_of_another_tool_are_not_taken() {
        let text = "# OSU MPI Latency Test v5\n# Size          Latency (us)\n8 1.00\n#----\n# Benchmarking PingPong\n 9 2.00\n";
        assert_eq!(tables(read, text).0[0].samples.len(), 1);
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, THREE);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("osu") {
            let rows = text.lines().filter(|line| line.trim_start().starts_with(|char: char| char.is_ascii_digit() && char != '0')).count();
            let (found, skipped) = tables(read, &text);
            assert_eq!((found.len(), skipped.len()), (1, 0), "{name}: {skipped:?}");
            let both = if name.contains("bibw") { 2 } else { 1 };
            assert_eq!(found[0].samples.len(), rows * both, "{name}");
        }
    }
}
