//! Tables in the layout of the published ones.

use super::super::discover::{Look, Page};
use super::row::{Cell, Row};
use super::run::Report;
use crate::plan::scenario::{Case, Table};
use crate::units::{format_ranks, format_size, plain};

/// Between columns; no cell has two spaces in a row.
const GAP: &str = "  ";
const NOTHING: &str = "–";

/// What a table's figures are.
pub(super) const fn unit(table: Table) -> &'static str {
    match table {
        Table::OneHost => "within one host, GB/s of all transfers together",
        Table::AcrossHosts => "across hosts, GB/s of all transfers together",
        Table::WeightSync => "ms until every engine has the whole model",
        Table::Incast => "ranks of other hosts into one, GB/s of all transfers together",
        Table::Staging => "ms of a weight sync by staging budget",
    }
}

/// All tables, and what is to be said of them.
pub(super) fn text(report: &Report, look: Look) -> String {
    let mut page = Page::new(look);
    for table in Table::ALL {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.case.scenario.table() == table).collect();
        if rows.is_empty() {
            continue;
        }
        page.line(&heading(table, &rows));
        for line in lines(&grid(table, &rows, report.prices.is_some())) {
            page.line(&line);
        }
        page.line("");
    }
    notes(report, &mut page);
    page.text
}

fn heading(table: Table, rows: &[&Row]) -> String {
    let bytes = rows.first().map_or(0, |row| row.case.bytes);
    match table {
        Table::OneHost | Table::AcrossHosts => unit(table).to_owned(),
        Table::WeightSync => format!("weight sync of {}, {}", format_size(bytes), unit(table)),
        Table::Incast => format!("incast, {} from each sender, {}", format_size(bytes), unit(table)),
        Table::Staging => format!("staging budget, weight sync of {}, ms", format_size(bytes)),
    }
}

/// Head and rows.
fn grid(table: Table, rows: &[&Row], predicted: bool) -> Vec<Vec<String>> {
    let mut head: Vec<String> = match table {
        Table::OneHost | Table::AcrossHosts => vec!["pattern", "w", "MiB"],
        Table::WeightSync => vec!["scenario"],
        Table::Incast => vec!["senders"],
        Table::Staging => vec!["scenario", "MiB"],
    }
    .into_iter()
    .map(str::to_owned)
    .collect();
    let cells = rows.first().map_or(&[][..], |row| &row.cells);
    for cell in cells {
        let name = cell.method.name();
        head.push(if table == Table::Staging { name.trim_end_matches(":staged").to_owned() } else { name });
        if predicted {
            head.push("pred/meas".to_owned());
        }
    }
    let compared = cells.len() > 1;
    if compared {
        head.push("best / first".to_owned());
    }
    let mut grid = vec![head];
    for row in rows {
        let case = &row.case;
        let mut line = vec![plain(&case.pattern)];
        match table {
            Table::OneHost | Table::AcrossHosts => line.extend([case.width.to_string(), mebibytes(case.bytes)]),
            Table::Staging => line.push(mebibytes(case.budget.unwrap_or(0))),
            Table::WeightSync | Table::Incast => {}
        }
        for cell in &row.cells {
            line.push(figure(cell));
            if predicted {
                line.push(cell.ratio().map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.2}")));
            }
        }
        if compared {
            let times = row.best().and_then(|(_, times)| times);
            line.push(times.map_or_else(|| NOTHING.to_owned(), |times| format!("{times:.2}x")));
        }
        grid.push(line);
    }
    grid
}

/// As short as it can be: one digit behind the point, of small ones more.
fn figure(cell: &Cell) -> String {
    let text = match cell.figure {
        nan if !nan.is_finite() => NOTHING.to_owned(),
        value if value >= 1.0 => format!("{value:.1}"),
        value if value >= 0.01 => format!("{value:.3}"),
        value => format!("{value:.6}"),
    };
    if cell.is_good() || cell.impossible { text } else { format!("{text}!") }
}

/// Bytes in MiB, with a fraction where there is one.
fn mebibytes(bytes: u64) -> String {
    let text = format!("{:.6}", bytes as f64 / f64::from(1 << 20));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Columns below each other: the first to the left, figures to the right.
fn lines(grid: &[Vec<String>]) -> Vec<String> {
    let columns = grid.first().map_or(0, Vec::len);
    let width = |column: usize| grid.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).enumerate();
        let padded = cells.map(|(at, (cell, &width))| if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        padded.collect::<Vec<_>>().join(GAP)
    };
    grid.iter().map(line).collect()
}

/// Names by the reason that they have in common, each once, in the order of their first.
fn by_reason<'a>(all: impl Iterator<Item = (&'a str, String)>) -> Vec<(&'a str, Vec<String>)> {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for (why, name) in all {
        match told.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => told.push((why, vec![name])),
        }
    }
    told
}

fn notes(report: &Report, page: &mut Page) {
    let sets: Vec<String> = report.ground.hosts.iter().map(|ranks| format_ranks(ranks)).collect();
    let whose = if report.given { "sets of ranks taken as hosts" } else { "hosts" };
    page.sentence("", &format!("{} engine, {} memory, {whose}: {}", report.engine, report.memory, sets.join(" / ")));
    for method in &report.methods {
        page.sentence("", &method.about());
    }
    let cells = || report.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (&row.case, cell)));
    if cells().next().is_some() {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let runs = format!("median of {} run{} after {} that are not timed", report.repeats, plural(report.repeats), report.warmup);
        let compared = if report.engine == "sim" {
            "simulated: nothing moved, so no byte was compared"
        } else {
            "every target byte compared in every run"
        };
        page.sentence("", &format!("{runs}; {compared}; ! marks wrong bytes and runs that were not whole"));
    }
    if cells().next().is_some() {
        page.sentence("", &plain(&format!("every run: toposcope open {}, Replay tab", report.session)));
    }
    if let Some(prices) = &report.prices {
        page.sentence("", &format!("pred/meas: predicted with {prices}, over measured"));
    }
    let mut told: Vec<String> = Vec::new();
    let mut once = |page: &mut Page, head: &str, text: String| {
        if !told.contains(&text) {
            page.sentence(head, &text);
            told.push(text);
        }
    };
    for (_, cell) in cells().filter(|(_, cell)| !cell.failed.is_empty() && cell.impossible) {
        let method = cell.method.name();
        once(page, "–  ", format!("{method}: not possible where a row crosses hosts: it works between ranks of one host"));
    }
    // A lost rank keeps every later row from running, a job on one host every row across hosts: a reason is told once, with its rows.
    let name = |case: &Case, cell: &Cell| format!("{}, {}, {}", case.pattern, format_size(case.bytes), cell.method.name());
    let failed = cells().filter(|(_, cell)| !cell.failed.is_empty() && !cell.impossible);
    for (why, names) in by_reason(failed.map(|(case, cell)| (cell.failed.as_str(), name(case, cell)))) {
        let more = if names.len() == 1 { String::new() } else { format!(" and {} more", names.len() - 1) };
        page.sentence("!  ", &plain(&format!("{}{more}: {why}", names[0])));
    }
    for doubt in &report.doubts {
        once(page, "▲  ", doubt.clone());
    }
    for (why, names) in by_reason(report.lacks.iter().map(|lack| (lack.why.as_str(), lack.pattern.clone()))) {
        page.sentence("–  ", &plain(&format!("{}: not possible: {why}", names.join(", "))));
    }
    for doubt in cells().flat_map(|(_, cell)| &cell.doubts) {
        once(page, "prediction: ", doubt.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::scenarios::method::Method;
    use crate::plan::scenario::{Amounts, Ground, Lack, Scenario};
    use crate::sample::MoverKind;

    fn cell(mover: MoverKind, figure: f64, failed: &str) -> Cell {
        Cell {
            method: Method { mover, message: matches!(mover, MoverKind::MpiSendrecv).then_some(8 << 20) },
            plans: 1,
            bytes: vec![1],
            seconds: vec![1.0],
            runs: 5,
            verified: 7,
            figure,
            predicted: Some(2.0 * figure),
            doubts: vec!["a fan that nobody measured".to_owned()],
            failed: failed.to_owned(),
            impossible: false,
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        let methods = rows[0].cells.iter().map(|cell| cell.method).collect();
        let (ground, session) = (Ground { world: 4, hosts: vec![vec![0, 1], vec![2, 3]] }, "s".to_owned());
        let (lacks, doubts, prices) = (Vec::new(), Vec::new(), Some("cal.json".to_owned()));
        Report { engine: "mpi", session, memory: "host", ground, given: false, methods, repeats: 5, warmup: 2, prices, rows, lacks, doubts }
    }

    fn case(name: &str) -> Case {
        let ground = Ground { world: 4, hosts: vec![vec![0, 1], vec![2, 3]] };
        Scenario::named(name).unwrap().cases(&ground, &Amounts { sizes: vec![3 << 19], model: 1 << 30 }).0.remove(0)
    }

    #[test]
    fn a_reason_is_told_once_with_the_rows_that_it_kept_from_running() {
        let lost = "rank 1 is lost: no answer while a plan was run";
        let row = |name, value| Row { case: case(name), cells: vec![cell(MoverKind::MpiPut, value, if value > 0.0 { "" } else { lost })] };
        let mut made = report(vec![row("pairs", 1.0), row("ring", f64::NAN), row("fan_in", f64::NAN)]);
        let lack = |pattern: &str, why: &str| Lack { pattern: pattern.to_owned(), why: why.to_owned() };
        made.lacks = vec![lack("xpeer", "needs two hosts"), lack("bipartite 4x4", "needs 8 ranks"), lack("xring", "needs two hosts")];
        let text = text(&made, Look::default());
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(['!', '–'])).collect();
        let first = format!("!  ring, 1536 KiB, mpi_put and 1 more: {lost}");
        assert_eq!(
            lines,
            [first.as_str(), "–  xpeer, xring: not possible: needs two hosts", "–  bipartite 4x4: not possible: needs 8 ranks"]
        );
    }

    #[test]
    fn wrong_bytes_are_marked_and_never_the_best() {
        let cells = vec![
            cell(MoverKind::MpiSendrecv, 10.0, ""),
            cell(MoverKind::MpiPut, 40.0, "rank 1: flow 0 (0→1): byte 3 is not what was sent"),
        ];
        let text = text(&report(vec![Row { case: case("xpairs"), cells }]), Look::default());
        let row = text.lines().find(|line| line.starts_with("xpairs")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["xpairs", "2", "1.5", "10.0", "2.00", "40.0!", "2.00", "1.00x"], "{text}");
        assert!(
            text.contains("!  xpairs, 1536 KiB, mpi_put: rank 1: flow 0") && text.contains("prediction: a fan that nobody measured"),
            "{text}"
        );
    }

    #[test]
    fn a_method_that_cannot_run_a_row_is_a_dash_and_no_failure() {
        let far = Cell { impossible: true, seconds: Vec::new(), ..cell(MoverKind::CudaIpcPull, f64::NAN, "cuda_ipc_pull works between") };
        let mut row = Row { case: case("xpairs"), cells: vec![cell(MoverKind::Nccl, 10.0, ""), far] };
        assert!(row.is_good());
        let text = text(&report(vec![row.clone()]), Look::default());
        let line = text.lines().find(|line| line.starts_with("xpairs ")).unwrap();
        assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["10.0", "2.00", "–", "–", "1.00x"], "{text}");
        assert!(text.contains("–  cuda_ipc_pull: not possible where a row crosses hosts"), "{text}");
        row.cells.remove(0);
        assert!(!row.is_good(), "nothing of it was run");
    }

    #[test]
    fn of_times_the_shortest_is_best_and_what_was_not_timed_is_a_dash() {
        let row = |first: f64, failed: &str| Row {
            case: case("sync_plan"),
            cells: vec![cell(MoverKind::MpiSendrecv, first, failed), cell(MoverKind::MpiPut, 71.5, "")],
        };
        let last = |row: Row| {
            let text = text(&report(vec![row]), Look::default());
            let line = text.lines().find(|line| line.starts_with("sharded, then a plan inside")).unwrap();
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(last(row(143.0, ""))[1..], ["143.0", "2.00", "71.5", "2.00", "2.00x"]);
        assert_eq!(last(row(f64::NAN, "no memory"))[1..], ["–!", "–", "71.5", "2.00", "–"]);
    }

    #[test]
    fn small_figures_keep_digits_and_sizes_are_as_short_as_they_can_be() {
        let shown = |value: f64| figure(&cell(MoverKind::Memcpy, value, ""));
        assert_eq!([1273.04, 5.44, 0.0213, 0.000_412].map(shown), ["1273.0", "5.4", "0.021", "0.000412"]);
        assert_eq!([4 << 20, 64 << 10, 3 << 19, 0].map(mebibytes), ["4", "0.0625", "1.5", "0"]);
    }
}
