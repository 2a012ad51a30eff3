//! The form of a job whose strategies are compared: a model, who has it, who wants it.

use crate::plan::strategy::{Held, Job};
use crate::topology::Topology;
use crate::tui::typing::Typing;
use crate::units::{format_ranks, parse_ranks, parse_size};

/// The lines of the form: name, and what it means.
pub const FIELDS: [(&str, &str); 5] = [
    ("trainers", "ranks that hold the model, such as 0-7"),
    ("engines", "ranks that shall hold all of it"),
    ("model", "its size, such as 8GiB"),
    ("held", "each trainer holds the whole model, or its shard only"),
    ("message", "most bytes of one, the staging budget; none: whole transfers, as with windows"),
];

/// The form as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyForm {
    /// the line with the cursor: a field, then the strategies
    pub at: usize,
    /// what is typed in the field with the cursor, while it is
    pub typing: Option<Typing>,
    /// empty for the first and the second half of the ranks
    texts: [String; 5],
}

impl Default for StrategyForm {
    fn default() -> Self {
        Self { at: 0, typing: None, texts: ["", "", "8GiB", "whole", "8MiB"].map(str::to_owned) }
    }
}

impl StrategyForm {
    /// What a field says in a job of `world` ranks.
    pub fn text(&self, field: usize, world: usize) -> String {
        let text = self.texts.get(field).map_or("", String::as_str);
        let ranks = |range: std::ops::Range<usize>| format_ranks(&range.collect::<Vec<_>>());
        match (field, text) {
            (0, "") => ranks(0..world.div_ceil(2)),
            (1, "") => ranks(world / 2..world),
            _ => text.to_owned(),
        }
    }

    /// The job that it means, or what is wrong and in which line.
    pub fn job(&self, topology: &Topology) -> Result<Job, (usize, String)> {
        let world = topology.world();
        let text = |field| self.text(field, world);
        let size = |field: usize| parse_size(&text(field)).map_err(|why| (field, why.to_string()));
        let ranks = |field: usize| parse_ranks(&text(field), world).map_err(|why| (field, why.to_string()));
        let message = match text(4).as_str() {
            "" | "none" => None,
            _ => Some(size(4)?),
        };
        let job = Job {
            hosts: topology.node_of(),
            bytes: size(2)?,
            trainers: ranks(0)?,
            engines: ranks(1)?,
            held: if self.shards() { Held::Shards } else { Held::Whole },
            message,
        };
        match job.check() {
            Ok(()) => Ok(job),
            Err(why) => Err((usize::from(why.starts_with("engines")), why)),
        }
    }

    fn shards(&self) -> bool {
        self.texts[3] == "shards"
    }

    /// Begin to type in the field with the cursor, or take its other choice; false on a strategy.
    pub fn edit(&mut self, world: usize) -> bool {
        match self.at {
            3 => self.turn(),
            at if at < FIELDS.len() => self.typing = Some(Typing::new(&self.text(at, world))),
            _ => return false,
        }
        true
    }

    /// The other choice of the field with the cursor, if it has one.
    pub fn turn(&mut self) {
        if self.at == 3 {
            let other = if self.shards() { "whole" } else { "shards" };
            other.clone_into(&mut self.texts[3]);
        }
    }

    /// Take what was typed.
    pub fn accept(&mut self) {
        if let (Some(typed), Some(text)) = (self.typing.take(), self.texts.get_mut(self.at)) {
            typed.text().trim().clone_into(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    fn topology(world: usize) -> Topology {
        Topology::of((0..world).map(|rank| Placement { rank, host: format!("h{}", rank / 2), ..Placement::default() }).collect())
    }

    #[test]
    fn an_empty_form_brings_the_model_from_the_first_half_to_the_second() {
        let job = StrategyForm::default().job(&topology(4)).unwrap();
        assert_eq!((job.trainers, job.engines, job.bytes, job.message), (vec![0, 1], vec![2, 3], 8 << 30, Some(8 << 20)));
        assert_eq!(job.hosts, [0, 0, 1, 1]);
        assert!(StrategyForm::default().job(&topology(1)).is_ok(), "one rank keeps what it has");
    }

    #[test]
    fn what_is_wrong_is_told_at_its_line() {
        for (field, text, why) in [(0, "9", "ranks"), (1, "1,1-", "set"), (2, "0", "bytes"), (2, "much", "size"), (4, "x", "size")] {
            let mut form = StrategyForm { at: field, ..StrategyForm::default() };
            form.typing = Some(Typing::new(text));
            form.accept();
            let Err((at, told)) = form.job(&topology(4)) else { panic!("{text}") };
            assert!(at == field || why == "bytes", "{text}: {at} {told}");
            assert!(!told.is_empty(), "{why}");
        }
    }
}
