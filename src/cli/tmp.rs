//! tmp
use super::args::*;
use super::settings;
use crate::measure::*;
use crate::session::*;
use crate::transport::Engine;
use clap::Parser;
pub fn main() {
    let cli = Cli::parse();
    let Some(Commands::Sweep { sweep, .. }) = cli.command else { return };
    #[cfg(feature = "mpi")]
    let world: usize = std::env::var("OMPI_COMM_WORLD_SIZE").or(std::env::var("PMI_SIZE")).unwrap_or("1".into()).parse().unwrap_or(1);
    #[cfg(feature = "mpi")]
    let engine: Box<dyn Engine> = match crate::transport::mpi::join(world) {
        Ok(crate::transport::mpi::Role::Root(root)) => root,
        Ok(crate::transport::mpi::Role::Worker(w)) => {
            let l = w.serve(Vec::new);
            eprintln!("{l:?}");
            return;
        }
        Err(e) => {
            eprintln!("{e}");
            return;
        }
    };
    #[cfg(not(feature = "mpi"))]
    let engine: Box<dyn Engine> = match crate::transport::threads::Threads::start(settings::threads(&sweep, 2).unwrap_or(2)) {
        Ok(e) => Box::new(e),
        Err(e) => {
            eprintln!("{e}");
            return;
        }
    };
    let kind = engine.kind();
    let world = engine.topology().world();
    let set = match settings::settings(&sweep, kind, world, settings::defaults(kind)) {
        Ok(s) => s,
        Err(e) => {
            eprintln!("{e:#}");
            return;
        }
    };
    let (tx, rx) = std::sync::mpsc::channel();
    let header = Header {
        format: Header::current_format(),
        program: "x".into(),
        name: "x".into(),
        started: String::new(),
        engine: kind,
        topology: engine.topology().clone(),
        software: [("mpi".to_string(), engine.software())].into(),
        environment: Default::default(),
    };
    eprintln!("{:?}", header.software);
    let mut model = Model::new(header);
    let start = std::time::Instant::now();
    {
        let mut conductor = Conductor::new(
            engine,
            rx,
            Default::default(),
            0,
            |event| {
                if matches!(event, Event::Notice { .. } | Event::RankLost { .. }) {
                    eprintln!("{event:?}");
                }
                model.apply(&Record { t: start.elapsed().as_secs_f64(), event });
            },
            Vec::new,
        );
        conductor.run(Some(Start::new(set)), true);
        conductor.engine().finish();
        drop(tx);
    }
    let mut rows: Vec<_> = model.cells.iter().collect();
    rows.sort_by_key(|r| r.0);
    for (cell, sizes) in rows {
        for s in sizes {
            println!(
                "{:?} {}->{} {:>10} {:>10} {:>10} GB/s n={} {:?} msgs {}",
                cell.pattern,
                cell.from,
                cell.to,
                s.bytes,
                crate::units::format_seconds(s.median),
                crate::units::format_gbps(s.bandwidth()),
                s.count,
                s.status,
                s.shots[0].messages
            );
        }
    }
    eprintln!("{} samples in {:?}", model.cells.samples(), start.elapsed());
}
