//! A recorded session played back: the same model, at any time of the session.

use crate::session::{Change, Header, Model, Record, Tape};

/// Models kept along the way, so that going back does not start from the beginning.
const SNAPSHOTS: usize = 8;
/// The same of a session longer than [`LONG`].
const FEW: usize = 3;
/// Fewest records between two snapshots.
const APART: usize = 512;
/// Of a longer session none is kept before somebody goes back: each is a copy of a model of a million cells, and opening it would
/// take several times as long, and as much memory.
const LONG: usize = 200_000;
/// Speeds of playback, session seconds a second.
const SPEEDS: [f64; 7] = [0.25, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0];

/// Where a recorded session stands.
#[derive(Debug, Default)]
pub struct Player {
    records: Tape,
    /// records applied
    at: usize,
    /// time shown, seconds since the session began
    time: f64,
    playing: bool,
    /// index into `SPEEDS`
    speed: usize,
    snapshots: Vec<(usize, Model)>,
}

/// What a move through the session did to the model.
#[derive(Debug, PartialEq)]
pub enum Moved {
    /// nothing
    Stayed,
    /// these changes, in order
    Forward(Vec<Change>),
    /// the model is another one
    Replaced,
}

impl Player {
    /// Take more records of the session; who looks at its end goes on to the new one.
    pub fn load(&mut self, records: Vec<Record>, model: &mut Model) {
        self.load_keeping(records, model, LONG);
    }

    /// The same, keeping models along the way if there are no more records than `long`.
    fn load_keeping(&mut self, records: Vec<Record>, model: &mut Model, long: usize) {
        if self.records.is_empty() {
            self.speed = 1;
        }
        let at_end = self.at == self.records.len();
        for record in records {
            self.records.push(record);
        }
        if !at_end {
            return;
        }
        let keep = self.records.len() <= long;
        let apart = self.apart();
        while let Some(record) = self.records.get(self.at) {
            model.apply(&record);
            self.at += 1;
            if keep && self.at.is_multiple_of(apart) && self.at < self.records.len() {
                self.snapshots.push((self.at, model.clone()));
            }
        }
        self.time = self.end();
    }

    /// Begin with a session that was read already, at its end.
    pub fn begin(&mut self, records: Tape) {
        *self = Self { at: records.len(), records, speed: 1, ..Self::default() };
        self.time = self.end();
    }

    /// Records between two snapshots.
    fn apart(&self) -> usize {
        let many = if self.records.len() > LONG { FEW } else { SNAPSHOTS };
        (self.records.len() / many).max(APART)
    }

    /// Length of the session, seconds.
    pub fn end(&self) -> f64 {
        (0..self.records.len()).rev().take(64).filter_map(|at| self.records.time(at)).fold(0.0, f64::max)
    }

    /// Time shown, seconds.
    pub const fn time(&self) -> f64 {
        self.time
    }

    /// Records applied, and records in all.
    pub fn position(&self) -> (usize, usize) {
        (self.at, self.records.len())
    }

    /// True while time goes on by itself.
    pub const fn playing(&self) -> bool {
        self.playing
    }

    /// Session seconds a second.
    pub fn speed(&self) -> f64 {
        SPEEDS.get(self.speed).copied().unwrap_or(1.0)
    }

    /// Play, or pause; from the beginning when at the end.
    pub fn toggle(&mut self, model: &mut Model) -> Moved {
        self.playing = !self.playing;
        if self.playing && self.at == self.records.len() { self.seek(0.0, model) } else { Moved::Stayed }
    }

    /// One speed up or down.
    pub fn change_speed(&mut self, faster: bool) {
        self.speed = if faster { (self.speed + 1).min(SPEEDS.len() - 1) } else { self.speed.saturating_sub(1) };
    }

    /// Let `seconds` of a person's time go by.
    pub fn tick(&mut self, seconds: f64, model: &mut Model) -> Moved {
        if !self.playing {
            return Moved::Stayed;
        }
        let moved = self.seek(self.time + seconds * self.speed(), model);
        self.playing = self.at < self.records.len();
        if moved == Moved::Stayed { Moved::Forward(Vec::new()) } else { moved }
    }

    /// Show the session at `time`, seconds.
    pub fn seek(&mut self, time: f64, model: &mut Model) -> Moved {
        let end = self.end();
        let time = if time >= end { end } else { time.max(0.0) };
        // Records are in order of time but for clocks of threads; the first that is later ends what is shown.
        let to = if time >= end { self.records.len() } else { self.records.until(time) };
        let moved = self.go(to, model);
        self.time = time;
        moved
    }

    /// Show the session after the next probe, or before the last one.
    pub fn step(&mut self, forward: bool, model: &mut Model) -> Moved {
        self.playing = false;
        let ends = |&at: &usize| self.records.ends_a_probe(at);
        let to = if forward {
            (self.at..self.records.len()).find(ends).map_or(self.records.len(), |next| next + 1)
        } else {
            (0..self.at.saturating_sub(1)).rev().find(ends).map_or(0, |last| last + 1)
        };
        let moved = self.go(to, model);
        self.time = self.at.checked_sub(1).and_then(|last| self.records.time(last)).unwrap_or(0.0);
        moved
    }

    fn go(&mut self, to: usize, model: &mut Model) -> Moved {
        if to == self.at {
            return Moved::Stayed;
        }
        let back = to < self.at;
        if back {
            let kept = self.snapshots.iter().rev().find(|(at, _)| *at <= to);
            let (at, start) = kept.map_or_else(|| (0, fresh(&model.header)), |(at, model)| (*at, model.clone()));
            self.at = at;
            *model = start;
        }
        if back {
            let (apart, kept) = (self.apart(), self.snapshots.last().map_or(0, |(at, _)| *at));
            for at in self.at..to {
                let Some(record) = self.records.get(at) else { break };
                model.apply(&record);
                // What is passed again for want of a snapshot need not be passed a third time.
                if (at + 1).is_multiple_of(apart) && at + 1 > kept {
                    self.snapshots.push((at + 1, model.clone()));
                }
            }
            self.at = to;
            return Moved::Replaced;
        }
        let changes: Vec<Change> = (self.at..to).filter_map(|at| self.records.get(at)).map(|record| model.apply(&record)).collect();
        self.at = to;
        Moved::Forward(changes)
    }
}

fn fresh(header: &Header) -> Model {
    Model::new(header.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture::b70;

    /// What a model is at a time, by folding from the beginning.
    fn folded(header: &Header, records: &[Record], time: f64) -> Model {
        let mut model = fresh(header);
        records.iter().filter(|record| record.t <= time).for_each(|record| {
            model.apply(record);
        });
        model
    }

    fn looks(model: &Model) -> (u64, f64, String) {
        (model.samples(), model.now, format!("{:?} {:?} {:?}", model.sweep, model.lost, model.log))
    }

    #[test]
    fn any_way_to_a_time_ends_in_the_same_model() {
        let (header, mut records) = b70();
        // Long enough for several snapshots.
        let length = records.last().unwrap().t;
        for round in 1..6 {
            let again: Vec<Record> =
                b70().1.into_iter().map(|record| Record { t: record.t + f64::from(round) * length, ..record }).collect();
            records.extend(again);
        }
        let mut model = fresh(&header);
        let mut player = Player::default();
        let (first, rest) = records.split_at(700);
        player.load(first.to_vec(), &mut model);
        player.load(rest.to_vec(), &mut model);
        assert!(!player.snapshots.is_empty());
        assert_eq!(player.position(), (records.len(), records.len()));
        let shares = [0.9, 0.1, 0.5, 0.99, 0.0, 0.3, 1.0, 0.62].map(|share| share * player.end());
        // Just before and at a kept model is where the wrong one would be taken.
        let edges: Vec<f64> = player.snapshots.iter().flat_map(|&(at, _)| [records[at - 3].t, records[at - 1].t]).collect();
        for time in shares.into_iter().chain(edges) {
            player.seek(time, &mut model);
            let wanted = folded(&header, &records, time);
            assert_eq!(looks(&model), looks(&wanted), "{time}");
        }
        // A long session keeps models only once somebody goes back.
        let (mut long, mut model) = (Player::default(), fresh(&header));
        long.load_keeping(records.clone(), &mut model, 0);
        assert!(long.snapshots.is_empty());
        for time in shares.into_iter().chain(shares) {
            long.seek(time, &mut model);
            assert_eq!(looks(&model), looks(&folded(&header, &records, time)), "{time}");
        }
        assert!(!long.snapshots.is_empty() && long.snapshots.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_session_read_beside_the_screen_is_shown_and_played_as_one_read_before() {
        use crate::ramp::Level;
        use crate::tui::feed::{Mode, Played};
        use crate::tui::fixture::{app, press, screen_on, shown};
        use crate::tui::state::Tab;
        let (header, records) = b70();
        let mut before = app((header.clone(), records.clone()), Tab::Matrix, Level::TrueColor, Mode::Recorded);
        let (mut tape, mut model) = (Tape::default(), fresh(&header));
        for record in records {
            model.apply(&record);
            tape.push(record);
        }
        let mut beside = screen_on(fresh(&header), Tab::Matrix, Level::TrueColor, Mode::Recorded);
        shown(&mut beside);
        beside.begin(Played { records: tape, model });
        for keys in ["", "left", "left left left", "right", ", ,", ".", "space", "space", "end"] {
            press(&mut before, keys);
            press(&mut beside, keys);
            assert_eq!(shown(&mut beside), shown(&mut before), "{keys}");
        }
    }
}
