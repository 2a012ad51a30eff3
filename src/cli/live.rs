//! A live job: engine, session, screen or none, socket, guard, all tied together around the conductor.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::{Context, Result, bail};

use super::args::{EngineArg, Global, SweepArgs};
use super::begin::Session;
use super::progress::{Progress, bar};
use super::recorder::Recorder;
use super::{FINE, FOUND, WRONG, settings, summary};
use crate::discover;
use crate::fabric::Fabric;
use crate::launch::chatter::Chatter;
use crate::launch::guard::Guard;
use crate::launch::job::Job;
#[cfg(feature = "mpi")]
use crate::launch::signals;
use crate::launch::terminal::{self, Terminal};
use crate::launch::{LaunchError, Member};
use crate::measure::{Conductor, Described, Gate, Start};
use crate::sample::EngineKind;
use crate::session::{Command, Event, Model};
use crate::sweep::{Knowledge, Probe};
use crate::transport::{Engine, group::Grouped, sim::Sim, threads::Threads};
use crate::units::parse_ranks;

/// What a live job is for.
pub(super) enum Mode {
    /// a person watches and commands
    Screen,
    /// one sweep, then the end
    Headless { out: Option<PathBuf>, json: bool },
    /// only where the ranks sit
    Discover { json: bool },
    /// tests of what a session's samples leave open, at most so many
    Tests { count: usize },
    /// plans, run for real
    Plans(super::execute::Runs),
    /// benchmark scenarios, made for the ranks that there are
    Scenarios(Box<super::scenarios::Wanted>),
}

/// Start, whoever this process is.
pub(super) fn start(global: &Global, args: &SweepArgs, mode: &Mode, job: Option<Job>) -> Result<u8> {
    let kind = match (args.engine, job) {
        (Some(EngineArg::Sim), _) => EngineKind::Sim,
        (None, None) if args.fabric.is_some() => EngineKind::Sim,
        (Some(EngineArg::Threads), _) | (None, None) => EngineKind::Threads,
        (Some(EngineArg::Mpi), _) | (None, Some(_)) => EngineKind::Mpi,
    };
    if kind != EngineKind::Mpi && job.is_some_and(|job| job.rank > 0) {
        bail!("--engine {} measures one process; start it without the launcher", kind.name());
    }
    if kind == EngineKind::Mpi && !cfg!(feature = "mpi") {
        bail!(
            "this program was built without MPI. Build it with the compiler of this job's MPI: \
             MPICC=mpicc cargo build --release --features mpi (needs mpicc and libclang), and start target/release/toposcope"
        );
    }
    // A file of rank 0's host, which need not be on others.
    let fabric = args.fabric.as_deref().filter(|_| job.is_none_or(|job| job.rank == 0)).map(settings::fabric).transpose()?.map(Arc::new);
    match kind {
        EngineKind::Sim => {
            let Some(described) = &fabric else { bail!("--engine sim simulates a described fabric; name it with --fabric NAME|FILE") };
            root(global, args, mode, None, fabric.as_ref(), || Ok(Box::new(Sim::new(Arc::clone(described)))))
        }
        EngineKind::Threads => root(global, args, mode, None, fabric.as_ref(), || {
            let ranks = settings::threads(args, discover::allowed_cores().len())?;
            Ok(Box::new(Threads::start(ranks)?))
        }),
        EngineKind::Mpi => mpi(global, args, mode, job, fabric.as_ref()),
        EngineKind::Imported => bail!("nothing can be measured with imported ranks"),
    }
}

#[cfg(not(feature = "mpi"))]
fn mpi(_: &Global, _: &SweepArgs, _: &Mode, _: Option<Job>, _: Option<&Arc<Fabric>>) -> Result<u8> {
    bail!("this program was built without MPI")
}

#[cfg(feature = "mpi")]
fn mpi(global: &Global, args: &SweepArgs, mode: &Mode, job: Option<Job>, fabric: Option<&Arc<Fabric>>) -> Result<u8> {
    use crate::transport::mpi::{Left, Role, join};
    let world = job.map_or(1, |job| job.world);
    if job.is_some() {
        signals::die_with_parent().context("could not tie this rank's life to its launcher's")?;
    }
    if job.is_none_or(|job| job.rank == 0) {
        return root(global, args, mode, job, fabric, || match join(world)? {
            Role::Root(engine) => Ok(engine as Box<dyn Engine>),
            Role::Worker(_) => bail!("the launcher calls this process rank 0, its MPI library does not"),
        });
    }
    ask_for_paths();
    signals::watch_as_worker().context("could not watch for signals")?;
    let mut chatter = Chatter::begin()?;
    let left = match join(world) {
        Ok(Role::Worker(worker)) => {
            let mut presence = crate::launch::guard::Presence::default();
            // Rank 0's guard was there before MPI_Init: a death in the first moments is told rightly, too.
            presence.keep();
            worker.serve(|| {
                presence.keep();
                chatter.lines()
            })
        }
        Ok(Role::Root(_)) => bail!("the launcher calls this process another rank than 0, its MPI library does not"),
        Err(error) => {
            chatter.end();
            return Err(error.into());
        }
    };
    #[cfg(feature = "cuda")]
    crate::transport::cuda::nccl::log::end();
    chatter.end();
    if left != Left::Together {
        // Without MPI_Finalize and without destructors: either would wait for transfers that were given up.
        signal_hook::low_level::exit(i32::from(if left == Left::Orphaned { WRONG } else { FOUND }));
    }
    Ok(FINE)
}

/// Have NCCL say which paths it takes, in a file of this process alone. Before there is a second thread.
fn ask_for_paths() {
    #[cfg(feature = "cuda")]
    if let Ok(folder) = crate::launch::folder::private() {
        crate::transport::cuda::nccl::log::ask(&folder);
    }
}

/// Everything that rank 0 holds besides the engine.
pub(super) struct House {
    chatter: Option<Chatter>,
    pub(super) guard: Option<Guard>,
    pub(super) terminal: Option<Terminal>,
    pub(super) stderr: File,
}

impl House {
    fn open(mode: &Mode, job: Option<&Job>) -> Result<Self> {
        let screen = matches!(mode, Mode::Screen) && cfg!(feature = "tui");
        let chatter = if screen || job.is_some() { Some(Chatter::begin()?) } else { None };
        let stderr = match &chatter {
            Some(chatter) => chatter.stderr.try_clone(),
            None => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).map(File::from).map_err(Into::into),
        };
        let mut house = Self { chatter, guard: None, terminal: None, stderr: stderr.context("standard error")? };
        if screen {
            match terminal::find(job, house.chatter.as_ref().map(|chatter| &chatter.stdout)) {
                Ok(terminal) => house.terminal = Some(terminal),
                // A job without a terminal is a batch job: it serves its socket.
                Err(LaunchError::NoTerminal { why }) if job.is_some() => {
                    let _ = writeln!(house.stderr, "toposcope: no terminal here ({why}); watch this job with: toposcope attach");
                }
                Err(error) => {
                    house.quiet();
                    return Err(error).context("toposcope sweep measures without a screen");
                }
            }
        }
        if house.terminal.is_some() || job.is_some() {
            match Guard::start(house.terminal.as_ref(), &house.stderr) {
                Ok(guard) => house.guard = Some(guard),
                Err(error) => {
                    house.quiet();
                    return Err(error.into());
                }
            }
        }
        Ok(house)
    }

    /// Give standard output and error back.
    fn quiet(&mut self) {
        if let Some(chatter) = self.chatter.take() {
            for line in chatter.end() {
                let _ = writeln!(self.stderr, "{line}");
            }
        }
    }
}

fn root(
    global: &Global,
    args: &SweepArgs,
    mode: &Mode,
    job: Option<Job>,
    fabric: Option<&Arc<Fabric>>,
    engine: impl FnOnce() -> Result<Box<dyn Engine>>,
) -> Result<u8> {
    let out = match mode {
        Mode::Headless { out, .. } => out.as_deref(),
        Mode::Scenarios(wanted) => wanted.out.as_deref(),
        _ => None,
    };
    if let Some(out) = out {
        writable(out)?;
    }
    ask_for_paths();
    let mut house = House::open(mode, job.as_ref())?;
    let (done, mut engine) = match engine() {
        Ok(engine) => with_engine(global, args, mode, engine, fabric, &mut house),
        Err(error) => (Err(error), None),
    };
    if let Some(guard) = house.guard.take() {
        match &done {
            Ok(done) if done.lost && job.is_some() => guard.see_out(),
            _ => guard.dismiss(),
        }
    }
    house.quiet();
    let mut finish = || {
        if let Some(engine) = &mut engine {
            engine.finish();
        }
        #[cfg(feature = "cuda")]
        crate::transport::cuda::nccl::log::end();
    };
    let done = match done {
        Ok(done) => done,
        Err(error) if job.is_some() => {
            let _ = writeln!(house.stderr, "toposcope: {}", super::told(&error));
            // Other ranks wait for orders, this one's to leave included.
            finish();
            signal_hook::low_level::exit(i32::from(WRONG));
        }
        Err(error) => return Err(error),
    };
    super::print(&done.text);
    if let Some(complaint) = &done.complaint {
        let _ = writeln!(house.stderr, "{complaint}");
    }
    finish();
    if job.is_some() && done.untidy {
        signal_hook::low_level::exit(i32::from(done.code));
    }
    Ok(done.code)
}

/// Refuse a file's path that cannot be written, before hours are measured for it. (Nothing is created yet.)
fn writable(out: &Path) -> Result<()> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if out.is_dir() || !folder.is_dir() {
        bail!("--out {}: expected a file in a folder that exists", out.display());
    }
    Ok(())
}

/// What a job came to.
struct Done {
    code: u8,
    /// for standard output
    text: String,
    /// ranks or transfers were given up: no destructor may wait for them
    untidy: bool,
    /// ranks do not answer any more
    lost: bool,
    /// for standard error
    complaint: Option<String>,
}

/// The engine is given back in any case: dropped, it would wait for ranks that wait for orders.
fn with_engine(
    global: &Global,
    args: &SweepArgs,
    mode: &Mode,
    mut engine: Box<dyn Engine>,
    fabric: Option<&Arc<Fabric>>,
    house: &mut House,
) -> (Result<Done>, Option<Box<dyn Engine>>) {
    let members: Vec<Member> = engine.topology().ranks.iter().map(Member::from).collect();
    let world = engine.topology().world();
    match args.group.as_deref().map(|text| parse_ranks(text, world).context("--group")).transpose() {
        Ok(None) => {}
        Ok(Some(group)) => match Grouped::new(engine, group) {
            Ok(grouped) => engine = Box::new(grouped),
            Err(error) => return (Err(error.into()), None),
        },
        Err(error) => return (Err(error), Some(engine)),
    }
    let knowledge = match fabric.map(|fabric| described(fabric, engine.group(), world)).transpose() {
        Ok(knowledge) => knowledge,
        Err(error) => return (Err(error), Some(engine)),
    };
    if let &Mode::Discover { json } = mode {
        let text = super::discover::text(engine.topology(), json, super::discover::Look::now());
        return (Ok(Done { code: FINE, text, untidy: false, lost: false, complaint: None }), Some(engine));
    }
    let session = match Session::open(global, args, engine.as_ref()) {
        Ok(session) => session,
        Err(error) => return (Err(error), Some(engine)),
    };
    if let Some(guard) = &house.guard {
        guard.ranks(&members);
    }
    run(global, mode, engine, knowledge, house, session)
}

/// What a fabric tells of a job of `world` ranks, of which a group may be measured.
fn described(fabric: &Arc<Fabric>, group: &[usize], world: usize) -> Result<Rc<dyn Knowledge>> {
    if fabric.world() != world {
        bail!("--fabric {}: it describes {} ranks, and this job has {world}", fabric.name(), fabric.world());
    }
    Ok(Rc::new(Described::new(Arc::clone(fabric), group.to_vec())))
}

fn run(
    global: &Global,
    mode: &Mode,
    engine: Box<dyn Engine>,
    knowledge: Option<Rc<dyn Knowledge>>,
    house: &mut House,
    session: Session,
) -> (Result<Done>, Option<Box<dyn Engine>>) {
    let Session { store, header, records, settings, start, next_probe, resume, plans } = session;
    let headless = !matches!(mode, Mode::Screen);
    let start = if headless { start.or_else(|| Some(Start::new(settings.clone()))) } else { start };
    let (gate, like, movers) = (Arc::new(Gate::default()), settings.clone(), engine.movers().to_vec());
    let (commands, orders): (Sender<Command>, Receiver<Command>) = mpsc::channel();
    let recorder = Recorder::new(store, header.clone(), &records, house.guard.clone(), resume.clone());
    let recorder = Rc::new(RefCell::new(recorder));
    let watched =
        super::watch::Watched { header: &header, records, settings, movers: engine.movers().to_vec(), commands, gate: &gate, resume };
    let watchers = match watched.begin(global, house, &recorder) {
        Ok(watchers) => watchers,
        Err(error) => return (Err(error), Some(engine)),
    };
    let progress = matches!(mode, Mode::Headless { .. }).then(|| Progress::on(&house.stderr));
    let chatter = RefCell::new(house.chatter.as_mut());
    let mut conductor = Conductor::new(
        engine,
        orders,
        Arc::clone(&gate),
        next_probe,
        |stamp, event| {
            let ended = matches!(event, Event::SweepEnded { .. });
            let mut recorder = recorder.borrow_mut();
            recorder.record_at(stamp, event);
            if ended {
                super::watch::leave_calibration(&mut recorder);
            }
            // Between probes, so never inside a timed region.
            if let Some(progress) = &progress {
                progress.show(|| so_far(recorder.model()));
            }
        },
        || chatter.borrow_mut().as_mut().map(|chatter| chatter.lines()).unwrap_or_default(),
    );
    if let Some(knowledge) = knowledge {
        conductor.know(knowledge);
    }
    conductor.like(like.clone());
    let foreseen = Rc::new(RefCell::new(None));
    let (told, facts) = (Rc::clone(&foreseen), Rc::clone(&recorder));
    let topology = header.topology.clone();
    conductor.plans(
        move |traffic, mover| told.borrow().clone().or_else(|| super::plans::foresee(facts.borrow().model(), traffic, mover)),
        move |path| super::plans::load(path, &topology),
    );
    for plan in &plans {
        conductor.load_plan(plan);
    }
    let ran = match mode {
        Mode::Tests { count } => super::run_tests::all(global, &mut conductor, &recorder, &like, *count, &house.stderr).map(|()| None),
        Mode::Scenarios(wanted) => {
            let mut bench =
                super::scenarios::Bench { conductor: &mut conductor, recorder: &recorder, foreseen: &foreseen, movers: &movers };
            bench.all(wanted, &like, &house.stderr).map(Some)
        }
        Mode::Plans(wanted) => {
            super::execute::all(&mut conductor, &recorder, &foreseen, wanted, &like, &house.stderr);
            Ok(None)
        }
        _ => {
            conductor.run(start, headless);
            Ok(None)
        }
    };
    let blemished = conductor.blemished();
    let engine = conductor.into_engine();
    drop(progress);
    let mut recorder = recorder.borrow_mut();
    recorder.record(Event::Closed);
    recorder.alone();
    watchers.end();
    // A look around leaves nothing behind, unless the person named the place.
    let discarded = global.session.is_none() && recorder.discard_empty();
    if discarded && matches!(mode, Mode::Screen) {
        let text = "nothing was measured\n".to_owned();
        return (Ok(Done { code: FINE, text, untidy: false, lost: false, complaint: None }), Some(engine));
    }
    (ran.and_then(|told| finish(mode, &recorder, blemished, told)), Some(engine))
}

/// `told`: what the mode has to say itself, with its exit code, and what else went wrong.
fn finish(mode: &Mode, recorder: &Recorder, blemished: bool, told: Option<(String, u8, Option<String>)>) -> Result<Done> {
    let model = recorder.model();
    if matches!(mode, Mode::Headless { .. }) && model.sweep.is_none() {
        // The sweep was refused; the reason stands in the last notice.
        let reason = model.log.back().map_or("the sweep was refused", |line| line.text.as_str());
        bail!("{reason}");
    }
    let mut calibration = recorder.folder().join(super::watch::CALIBRATION);
    if let Mode::Headless { out: Some(out), .. } = mode {
        crate::export::write_calibration(model, out).with_context(|| {
            let session = recorder.folder().display();
            format!(
                "--out: the calibration was not written; the samples are safe: toposcope export {session} --format calibration --out FILE"
            )
        })?;
        calibration.clone_from(out);
    }
    let there = calibration.exists().then_some(calibration.as_path());
    let text = match mode {
        Mode::Headless { json: true, .. } => summary::json(model, recorder.folder(), there),
        // Whoever asked for tests tells the findings.
        Mode::Tests { .. } | Mode::Plans(_) | Mode::Scenarios(_) => String::new(),
        _ => summary::text(model, recorder.folder(), there),
    };
    let lost = !model.lost.is_empty();
    let mut code = if blemished { FOUND } else { FINE };
    let mut text = text;
    if let Mode::Plans(plans) = mode {
        (text, code) = super::execute::told(plans, &model.plans, &model.executions)?;
    }
    let mut complaint = None;
    if let Some(told) = told {
        (text, code, complaint) = told;
    }
    let complaint = complaint.or_else(|| recorder.failed().map(|error| format!("toposcope: the session lacks its end: {error}")));
    if complaint.is_some() {
        code = WRONG;
    }
    Ok(Done { code, text, untidy: lost || blemished, lost, complaint })
}

/// How far a headless sweep is.
fn so_far(model: &Model) -> Option<String> {
    let sweep = model.sweep.as_ref()?;
    let probe = sweep.probe().map(Probe::describe).unwrap_or_default();
    Some(format!("{}  {probe}", bar(sweep.share(), sweep.seconds_left())))
}
