//! The closed loop on the simulator (issue 3, must show b, c, d, f): what a fabric is told to be, a sweep and its fits find again.

mod cost;
mod prices;
mod published;
mod recovered;
mod resources;
mod trunk;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use toposcope::fabric::Fabric;
use toposcope::fit::{Confidence, Fits};
use toposcope::measure::{Conductor, Described, Gate, Start};
use toposcope::sample::{EngineKind, MoverKind};
use toposcope::session::{Event, Header, Model, Record, fits};
use toposcope::sweep::{Knowledge, SweepSettings};
use toposcope::transport::sim::Sim;

/// What came of a simulated sweep.
pub struct Run {
    pub records: Vec<Record>,
    pub model: Model,
    /// virtual seconds
    pub seconds: f64,
}

impl Run {
    fn fits(&self) -> Fits {
        fits(&self.model, Some(Confidence::usual()))
    }
}

/// Sizes that the method names, 4 KiB..256 MiB.
pub fn sizes() -> Vec<u64> {
    (0..9).map(|step| 4096 << (2 * step)).collect()
}

/// What the program measures when nobody says otherwise, at a `ci` of 0.05: every local copy and ordered pair, until each interval is
/// within that share of its median.
pub fn calibration(ci: f64) -> SweepSettings {
    SweepSettings { sizes: sizes(), mover: MoverKind::Simulated, ci, repeats: 40, ..SweepSettings::default() }
}

pub fn shipped(name: &str) -> Arc<Fabric> {
    Arc::new(Fabric::shipped(name).unwrap().unwrap())
}

/// What a sweep of a fabric is taken on.
pub fn header(fabric: &Fabric, settings: &SweepSettings) -> Header {
    Header {
        format: Header::current_format(),
        program: "test".to_owned(),
        name: fabric.name().to_owned(),
        started: "2025-01-01T10:00:00Z".to_owned(),
        engine: EngineKind::Sim,
        group: Vec::new(),
        settings: settings.clone(),
        topology: fabric.topology(),
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
    }
}

/// Sweep a fabric; `told` whether the planner knows it, or hosts alone.
pub fn sweep(fabric: &Arc<Fabric>, settings: &SweepSettings, told: bool) -> Run {
    let records = RefCell::new(Vec::new());
    let (_commands, orders) = mpsc::channel();
    let sink = |t: Option<f64>, event: Event| records.borrow_mut().push(Record { t: t.unwrap(), event });
    let mut conductor = Conductor::new(Box::new(Sim::new(Arc::clone(fabric))), orders, Arc::new(Gate::default()), 0, sink, Vec::new);
    if told {
        let knowledge: Rc<dyn Knowledge> = Rc::new(Described::new(Arc::clone(fabric), Vec::new()));
        conductor.know(knowledge);
    }
    conductor.run(Some(Start::new(settings.clone())), true);
    drop(conductor);
    let records = records.into_inner();
    let mut model = Model::new(header(fabric, settings));
    for record in &records {
        model.apply(record);
    }
    let seconds = model.now;
    Run { records, model, seconds }
}
