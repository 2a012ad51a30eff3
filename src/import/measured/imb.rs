//! Intel MPI benchmarks (IMB-MPI1), the tests between two ranks: times a message, from which the rates follow. Megabytes are 1e6 bytes
//! since 2018 (`src_c/IMB_output.c`) and were 2^20 before, so times are read where there are any.

use super::rows::{MB, MIB, Step, block, both, grouped, misshapen, rank, rated, size, timed};
use super::{Collective, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern};

/// Tests whose numbers are of a pair, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// half of a round trip
    PingPong,
    /// both send at the same time
    PingPing,
    /// each sends to the rank above and receives from the one below
    Sendrecv,
    /// each exchanges with both neighbours
    Exchange,
    /// the lower half of the ranks sends to the upper
    Uniband,
    Biband,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "PingPong" | "PingPongSpecificSource" | "PingPongAnySource" => Self::PingPong,
            "PingPing" | "PingPingSpecificSource" | "PingPingAnySource" => Self::PingPing,
            "Sendrecv" => Self::Sendrecv,
            "Exchange" => Self::Exchange,
            "Uniband" => Self::Uniband,
            "Biband" => Self::Biband,
            _ => return None,
        })
    }

    /// Messages that a rank has sent and received in the time that is printed.
    const fn messages(self) -> f64 {
        match self {
            Self::PingPong | Self::PingPing => 1.0,
            Self::Sendrecv => 2.0,
            Self::Exchange => 4.0,
            Self::Uniband | Self::Biband => 0.0,
        }
    }

    const fn is_band(self) -> bool {
        matches!(self, Self::Uniband | Self::Biband)
    }
}

#[derive(Default)]
struct Draft {
    version: Option<String>,
    tables: Vec<Table>,
    /// of the benchmark at hand; none if its numbers are of no pair
    kind: Option<Kind>,
    test: String,
    /// line of its name
    line: usize,
    ranks: u64,
    groups: bool,
    /// words of a row
    width: Option<usize>,
    /// columns are told
    header: bool,
    /// bytes of the megabytes that are printed, once a row shows
    megabyte: Option<f64>,
}

fn is_banner(text: &str) -> bool {
    text.starts_with('#') && text.contains("Intel") && (text.contains("MPI Benchmark") || text.contains("MPI benchmark"))
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    if !text.starts_with("# Benchmarking ") && !is_banner(text) {
        return None;
    }
    let mut draft = Draft::default();
    let used = block(lines, skips, |line, skips| draft.line(line, line.number == first.number, skips));
    draft.close();
    if draft.tables.is_empty() {
        skips.push(first.number, "the Intel MPI benchmarks printed no rows of two ranks here");
    }
    Some((draft.tables, used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, first: bool, skips: &mut Skips) -> Step {
        let text = line.text.trim();
        if is_banner(text) {
            if !first {
                return Step::End;
            }
            let words = text.split([' ', ',']).map(|word| word.trim_start_matches(['V', 'v']));
            self.version = words.filter(|word| word.starts_with(|char: char| char.is_ascii_digit())).map(named).next();
        } else if let Some(name) = text.strip_prefix("# Benchmarking ") {
            self.begin(name.trim(), line, skips);
        } else if let Some(comment) = text.strip_prefix('#') {
            return self.comment(comment.trim(), line, skips);
        } else if let Some(bytes) = text.split_whitespace().next().and_then(size) {
            if self.header && self.kind.is_some() {
                self.row(bytes, line, skips);
            } else if self.line == 0 || text.split_whitespace().any(|word| grouped(word).is_none()) {
                return Step::Strange;
            }
        } else {
            return Step::Strange;
        }
        Step::Mine
    }

    fn begin(&mut self, name: &str, line: Line<'_>, skips: &mut Skips) {
        self.close();
        self.kind = Kind::of(name);
        self.test = named(name);
        (self.line, self.ranks, self.groups, self.width, self.header, self.megabyte) = (line.number, 2, false, None, false, None);
        if self.kind.is_none() {
            let why = if name.starts_with("Multi-") { "of groups whose ranks are not told" } else { "of no pair of ranks" };
            skips.push(line.number, format!("{} is {why}: no rate of a link is in it", shown(name)));
        }
    }

    fn comment(&mut self, comment: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        if comment.starts_with("OSU ") || comment.starts_with("nThread") || comment.contains("#iterations") {
            return Step::End;
        }
        if let Some(ranks) = comment.strip_prefix("#processes =") {
            self.ranks = ranks.split_whitespace().next().and_then(|ranks| size(ranks.trim_end_matches(';'))).unwrap_or(2);
        } else if comment.contains("groups of") {
            self.groups = true;
            if self.kind.take().is_some() {
                skips.push(
                    self.line,
                    format!("{} ran in several groups at once, whose ranks are not told: it is left out", shown(&self.test)),
                );
            }
        } else if comment.starts_with("bytes") {
            self.header(comment, line, skips);
        }
        Step::Mine
    }

    fn header(&mut self, comment: &str, line: Line<'_>, skips: &mut Skips) {
        let Some(kind) = self.kind else { return };
        // Mails break lines: the last title may stand on the next.
        let fits = if kind.is_band() { comment.contains("Mbytes/sec") && comment.contains("Msg/sec") } else { comment.contains("[usec]") };
        if !fits {
            skips.push(line.number, format!("{} has not the columns that {} has: it is left out", shown(comment), self.test));
            self.kind = None;
            return;
        }
        let crowd = self.is_crowd();
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(text.to_owned());
        match kind {
            Kind::PingPong => note("half of a round trip: the mean of both directions"),
            Kind::PingPing => {}
            _ if crowd => note("all ranks at the same time, which are told together alone"),
            Kind::Sendrecv => note("the printed rate counts what comes and what goes: half of it is one direction's"),
            Kind::Exchange => note("two messages each way in the time that is printed; its rate counts four"),
            Kind::Uniband => {}
            Kind::Biband => note("the sum of both directions, half of it for each"),
        }
        let ends =
            if crowd { vec![super::rows::end(&format!("ranks 0 to {}", self.ranks.saturating_sub(1)))] } else { vec![rank(0), rank(1)] };
        self.header = true;
        let table = Table {
            tool: Tool::Imb,
            test: self.test.clone(),
            version: self.version.clone(),
            line: self.line,
            unit: if kind.is_band() { "MB/s" } else { "µs" },
            orientation: match kind {
                _ if crowd => "all ranks together",
                Kind::PingPong => "there and back, between rank 0 and rank 1",
                Kind::Uniband => "rank 0 sends to rank 1",
                _ => "both ways at the same time",
            },
            size_from: SizeFrom::Told,
            memory: Memory::Host,
            ends,
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        };
        table.keep(&mut self.tables, skips);
    }

    /// True if more than one pair is told together.
    fn is_crowd(&self) -> bool {
        self.ranks > 2 && !matches!(self.kind, Some(Kind::PingPong | Kind::PingPing) | None)
    }

    fn row(&mut self, bytes: u64, line: Line<'_>, skips: &mut Skips) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let width = *self.width.get_or_insert(words.len());
        let numbers: Option<Vec<f64>> = words.iter().map(|word| amount(word)).collect();
        let (Some(kind), Some(numbers)) = (self.kind, numbers.filter(|numbers| numbers.len() == width)) else {
            skips.push(line.number, misshapen(line.text, width));
            return;
        };
        // The time of the slowest rank, by which the rate is worked out: `t[usec]`, or `t_max[usec]` of three.
        let (time, printed) = match (kind.is_band(), numbers.as_slice()) {
            (true, [_, _, rate, messages]) => (*messages, *rate),
            (false, [_, _, time, rate] | [_, _, _, time, _, rate] | [_, _, _, time, _, rate, _]) => (*time, *rate),
            // Broken in two by a mail: the rate stands on the next line.
            (false, [_, _, time] | [_, _, _, time, _]) => (*time, 0.0),
            _ => {
                skips.push(line.number, misshapen(line.text, width));
                return;
            }
        };
        let moved = if kind.is_band() { bytes as f64 * time } else { kind.messages() * bytes as f64 / (time * 1e-6) };
        if printed >= 10.0 && moved > 0.0 && self.megabyte.is_none() {
            let nearer = (moved / printed - MB).abs() < (moved / printed - MIB).abs();
            self.megabyte = Some(if nearer { MB } else { MIB });
        }
        let ranks = self.ranks;
        let Some(table) = self.tables.last_mut() else { return };
        // As its header was understood: the number of processes may be told anew.
        let crowd = table.ends.len() < 2;
        if bytes == 0 {
            if !kind.is_band() {
                table.notes.push(format!("a message of 0 bytes, {time} µs, is no sample"));
            }
            return;
        }
        // Messages a second are printed without decimals.
        let rate = if printed >= 10.0 { printed * self.megabyte.unwrap_or(MB) } else { moved };
        if crowd {
            let seconds = if kind.is_band() { bytes as f64 * (ranks / 2) as f64 / rate } else { time * 1e-6 };
            if seconds.is_finite() && seconds > 0.0 {
                let sum = kind.is_band().then_some(rate);
                table.collectives.push(Collective { bytes, seconds, in_place_seconds: None, bus_bandwidth: None, sum });
            }
            return;
        }
        match kind {
            Kind::PingPong => {
                let sample = timed(&table.ends, Pattern::Peer, (0, 1), bytes, time * 1e-6);
                table.put(sample, line.number, skips);
            }
            Kind::PingPing | Kind::Sendrecv => both(table, bytes, time * 1e-6, line.number, skips),
            Kind::Exchange => both(table, bytes, time * 1e-6 / 2.0, line.number, skips),
            Kind::Uniband => {
                let sample = rated(&table.ends, Pattern::Peer, (0, 1), bytes, rate);
                table.put(sample, line.number, skips);
            }
            Kind::Biband => {
                both(table, bytes, if rate > 0.0 { bytes as f64 / (rate / 2.0) } else { 0.0 }, line.number, skips);
            }
        }
    }

    /// What is known of a benchmark when its rows are read: which megabytes it printed.
    fn close(&mut self) {
        let Some(table) = self.tables.last_mut().filter(|table| table.line == self.line) else { return };
        if table.unit == "MB/s" {
            table.unit = if self.megabyte == Some(MIB) { "MB/s (2^20 bytes)" } else { "MB/s (1e6 bytes)" };
        } else if self.megabyte == Some(MIB) {
            table.notes.push("its megabytes are of 2^20 bytes, as its times say; the times are read".to_owned());
        }
        if table.samples.is_empty() && table.collectives.is_empty() {
            self.tables.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;

    const RUN: &str = "#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n# Date  : today\n# Benchmarking PingPong\n# #processes = 2\n# ( 2 additional processes waiting in MPI_Barrier)\n\
        #---\n       #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000         0.50         0.00\n\
        1000         1000        10.00       100.00\n     4194304           10     bad     time\n\n# Benchmarking Sendrecv\n# #processes = 2\n#---\n\
        #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n1048576 10 90.00 100.00 95.00 20000.00\n\
        # Benchmarking Exchange\n# #processes = 2\n #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n1000 10 9.00 20.00 9.50 200.00\n\
        # Benchmarking Allreduce\n# #processes = 4\n#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n 4 1000 1.0 1.0 1.0\n\
        # Benchmarking Biband\n# #processes = 2\n#bytes #repetitions   Mbytes/sec      Msg/sec\n 1000 1000 300.00 300000\n\
        # Benchmarking Uniband\n# #processes = 4\n#bytes #repetitions   Mbytes/sec      Msg/sec\n 1000 1000 400.00 400000\n\n\
        # All processes entering MPI_Finalize\n";

    #[test]
    fn rows_are_of_the_ends_that_their_header_has() {
        let text = "# Benchmarking Uniband\n# #processes = 4\n#bytes #repetitions   Mbytes/sec      Msg/sec\n# #processes = 2\n 1000 1000 400.00 400000\n";
        let (found, _) = tables(read, text);
        assert_eq!((found[0].ends.len(), found[0].samples.len(), found[0].collectives.len()), (1, 0, 1));
    }

    #[test]
    fn times_tell_the_rate_of_each_direction() {
        let (found, skipped) = tables(read, RUN);
        let told: Vec<_> = found.iter().map(|table| (table.test.as_str(), table.line, table.samples.len())).collect();
        assert_eq!(told, [("PingPong", 3, 1), ("Sendrecv", 12, 2), ("Exchange", 17, 2), ("Biband", 25, 2), ("Uniband", 29, 0)]);
        near(rate(&found[0], 0, 1), 1e8);
        near(rate(&found[1], 1, 0), 1_048_576.0 / 100e-6);
        near(rate(&found[2], 0, 1), 1e8);
        near(rate(&found[3], 0, 1), 150e6);
        near(found[4].collectives[0].seconds, 5e-6);
        assert!(found.iter().all(|table| table.version.as_deref() == Some("2021.7")));
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [10, 21]);
        assert_eq!((found[0].unit, found[3].unit), ("µs", "MB/s (1e6 bytes)"));
    }

    /// IMB 2.3: 2 * 65536 bytes in 100 µs are 1250 of its megabytes, which were of 2^20 bytes.
    #[test]
    fn old_megabytes_are_told_by_the_times() {
        let text = "# Benchmarking Sendrecv\n# #processes = 2\n#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n65536 1000 99.00 100.00 99.50 1250.00\n\
            # Benchmarking Uniband\n# #processes = 2\n#bytes #repetitions   Mbytes/sec      Msg/sec\n 1048576 10 500.00 500\n";
        let (found, _) = tables(read, text);
        assert!(found[0].notes.iter().any(|note| note.contains("2^20")), "{:?}", found[0].notes);
        near(rate(&found[0], 0, 1), 655_360_000.0);
        assert_eq!(found[1].unit, "MB/s (2^20 bytes)");
        near(rate(&found[1], 0, 1), 500.0 * 1_048_576.0);
    }

    #[test]
    fn groups_and_unknown_columns_are_told() {
        let text = "# Benchmarking PingPong\n# ( 2 groups of 2 processes each running simultaneous )\n#bytes #repetitions t[usec] Mbytes/sec\n8 1 1.0 8.0\n# Benchmarking Multi-PingPong\n# Benchmarking PingPong\n#bytes x y\n8 1 1.0 8.0\n";
        let (found, skipped) = tables(read, text);
        assert_eq!((found.len(), skipped.iter().map(|skip| skip.0).collect::<Vec<_>>()), (0, vec![1, 1, 5, 7]));
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("imb") {
            let (found, skipped) = tables(read, &text);
            assert!(!found.is_empty() && skipped.iter().all(|skip| skip.1.contains("of no pair")), "{name}: {skipped:?}");
            // All that is printed of two ranks has megabytes of 1e6 bytes; sizes of the command are there.
            assert!(found.iter().all(|table| table.samples.len() + table.collectives.len() >= 3), "{name}");
        }
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, RUN);
    }
}
