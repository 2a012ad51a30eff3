//! One line of a session.

use serde::Deserialize;

use crate::sample::Sample;
use crate::session::{Event, Record};
use crate::sweep::Enough;

/// How nearly every line goes on behind its time.
const DONE: &[u8] = b"\"event\":\"probe_done\",";

/// The end of a probe, by its own shape.
#[derive(Deserialize)]
struct Done {
    t: f64,
    probe: u64,
    samples: Vec<Sample>,
    #[serde(default)]
    enough: Option<Enough>,
}

/// Read a line. A tagged event is collected whole before its kind is known, so that of a million samples the most part of the time goes there;
/// the ends of probes, as this program writes them, are read without that. What is wrong with one is told by the usual way.
pub(super) fn record(line: &[u8]) -> Result<Record, serde_json::Error> {
    let rest = line.iter().take(40).position(|byte| *byte == b',').and_then(|at| line.get(at + 1..));
    if rest.is_some_and(|rest| rest.starts_with(DONE))
        && let Ok(Done { t, probe, samples, enough }) = serde_json::from_slice(line)
    {
        return Ok(Record { t, event: Event::ProbeDone { probe, samples, enough } });
    }
    serde_json::from_slice(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(line: &str) -> Option<Record> {
        serde_json::from_str(line).ok()
    }

    #[test]
    fn both_ways_read_the_same() {
        let sample = r#"{"pattern":"peer","from":3,"to":2,"bytes":4194304,"repeat":0,"messages":1,"seconds":0.175,"path":"inter_node","isolated":true,"status":"ok"}"#;
        let good = format!(r#"{{"t":8.43,"event":"probe_done","probe":7,"samples":[{sample},{sample}]}}"#);
        let read = record(good.as_bytes()).unwrap();
        assert!(matches!(&read.event, Event::ProbeDone { probe: 7, samples, enough: None } if samples.len() == 2), "{read:?}");
        let enough = good.replace(r#""samples""#, r#""enough":"interval","samples""#);
        for line in [
            good.clone(),
            enough,
            good.replace("8.43", "8"),
            good.replace(r#""probe":7,"#, r#""probe":7,"later":[1,2],"#),
            r#"{"event":"probe_done","t":1,"probe":7,"samples":[]}"#.to_owned(),
            r#"{"t":1,"event":"paused"}"#.to_owned(),
            r#"{"t":1,"event":"of_tomorrow","x":1}"#.to_owned(),
            // Not to be read by either.
            good.replace(r#""probe":7,"#, ""),
            good.replace("4194304", "\"many\""),
            good.replace("probe_done", "probe_done_"),
            good[..good.len() - 1].to_owned(),
        ] {
            assert_eq!(record(line.as_bytes()).ok(), usual(&line), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_as_usual() {
        let line = r#"{"t":1,"event":"probe_done","probe":"x","samples":[]}"#;
        let told = record(line.as_bytes()).unwrap_err().to_string();
        assert_eq!(told, serde_json::from_str::<Record>(line).unwrap_err().to_string());
    }
}
