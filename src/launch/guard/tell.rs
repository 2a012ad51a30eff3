use super::Status;
use crate::launch::Member;
use crate::units::{format_ranks, plain};

/// Who ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gone {
    Rank(Member),
    /// the launcher, or one of its helpers: name and process id
    Launcher(String, u32),
}

/// All that the guard knows at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Case {
    /// those that ended first; several if no order was seen
    pub first: Vec<Gone>,
    /// ranks that are threads of rank 0's process, itself included
    pub threads: usize,
    /// the signal that rank 0 got before it ended
    pub signal: Option<String>,
    /// host names of ranks elsewhere
    pub elsewhere: Vec<String>,
    pub status: Status,
    /// what the ones that ended printed last
    pub last_words: Vec<(usize, Vec<String>)>,
}

/// The message: who, where, during which probe, what is kept, how to go on. Lines end in `\n`.
pub(super) fn tell(case: &Case) -> String {
    let during = case.status.probe.as_ref().map_or_else(|| "between probes".to_owned(), |probe| format!("during {}", plain(probe)));
    let mut lines = vec![format!("toposcope: {}", cause(case, &during))];
    for (rank, words) in &case.last_words {
        lines.extend(words.iter().map(|line| format!("  rank {rank} printed: {}", plain(line))));
    }
    if let Some(session) = &case.status.session {
        let name = plain(&session.display().to_string());
        lines.push(format!("  {} completed samples are in {name}", case.status.samples));
    }
    if let Some(resume) = &case.status.resume {
        lines.push(format!("  to go on:  {}", plain(resume)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn cause(case: &Case, during: &str) -> String {
    let signal = case.signal.as_deref();
    match case.first.as_slice() {
        [] => {
            let how = signal.map_or_else(|| "rank 0 ended".to_owned(), |signal| format!("rank 0 was told to end ({})", plain(signal)));
            let hosts = case.elsewhere.iter().map(|host| plain(host)).collect::<Vec<_>>().join(", ");
            let perhaps = if hosts.is_empty() {
                ": the launcher, the batch system or a person ended the job".to_owned()
            } else {
                format!(". A rank on another host ({hosts}) may have; if so, the launcher's own message names it")
            };
            format!("{how} {during}; no process of the job on this host had died before{perhaps}")
        }
        [Gone::Rank(member)] if case.status.watching => {
            format!("this screen (process {} on {}) died; a job that it watched runs on", member.pid, plain(&member.host))
        }
        [Gone::Rank(member)] if member.rank == 0 && case.threads > 1 => {
            format!("the process of ranks 0-{} ({} on {}) died {during}", case.threads - 1, member.pid, plain(&member.host))
        }
        [Gone::Rank(member)] => format!("rank {} (process {} on {}) died {during}", member.rank, member.pid, plain(&member.host)),
        [Gone::Launcher(name, pid)] => format!("the launcher ({}, process {pid}) died {during}", plain(name)),
        several => {
            let ranks: Vec<&Member> =
                several.iter().filter_map(|gone| if let Gone::Rank(member) = gone { Some(member) } else { None }).collect();
            let launchers = several.iter().filter_map(|gone| {
                if let Gone::Launcher(name, pid) = gone { Some(format!("the launcher ({}, process {pid})", plain(name))) } else { None }
            });
            let mut who: Vec<String> = launchers.collect();
            if let Some(member) = ranks.first() {
                let mut numbers: Vec<usize> = ranks.iter().map(|member| member.rank).collect();
                numbers.sort_unstable();
                let word = if numbers.len() == 1 { "rank" } else { "ranks" };
                who.push(format!("{word} {} on {}", format_ranks(&numbers), plain(&member.host)));
            }
            format!("{} died {during}, too close together to tell who was first", who.join(" and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn member(rank: usize) -> Member {
        Member { rank, host: "no\u{1b}[2Jde7".to_owned(), pid: 4000 + rank as u32 }
    }

    #[test]
    fn one_rank_is_named_with_what_is_kept_and_how_to_go_on() {
        let status = Status {
            session: Some(PathBuf::from("/s/lab-1x3")),
            samples: 1234,
            probe: Some("peer 0 → 2, 64 MiB".to_owned()),
            resume: Some("mpirun -n 3 toposcope --resume /s/lab-1x3".to_owned()),
            ..Status::default()
        };
        let case = Case { first: vec![Gone::Rank(member(2))], status, last_words: vec![(2, vec!["boom".to_owned()])], ..Case::default() };
        let expect = "toposcope: rank 2 (process 4002 on no[2Jde7) died during peer 0 → 2, 64 MiB\n  rank 2 printed: boom\n  \
                      1234 completed samples are in /s/lab-1x3\n  to go on:  mpirun -n 3 toposcope --resume /s/lab-1x3\n";
        assert_eq!(tell(&case), expect);
    }

    #[test]
    fn a_screen_that_watched_is_no_rank() {
        let status = Status { watching: true, ..Status::default() };
        let text = tell(&Case { first: vec![Gone::Rank(member(0))], status, ..Case::default() });
        assert_eq!(text, "toposcope: this screen (process 4000 on no[2Jde7) died; a job that it watched runs on\n");
    }

    #[test]
    fn threads_of_one_process_are_one() {
        let text = tell(&Case { first: vec![Gone::Rank(member(0))], threads: 3, ..Case::default() });
        assert!(text.starts_with("toposcope: the process of ranks 0-2 (4000 on no[2Jde7) died between probes\n"), "{text}");
    }

    #[test]
    fn several_are_named_together() {
        let first = vec![Gone::Rank(member(2)), Gone::Launcher("mpirun".to_owned(), 9), Gone::Rank(member(1))];
        let text = tell(&Case { first, ..Case::default() });
        assert!(text.contains("the launcher (mpirun, process 9) and ranks 1-2 on no[2Jde7 died between probes, too close"), "{text}");
    }

    #[test]
    fn nobody_here_died_first() {
        let case = Case { signal: Some("SIGTERM".to_owned()), ..Case::default() };
        assert!(tell(&case).contains("rank 0 was told to end (SIGTERM) between probes; no process of the job on this host"));
        let text = tell(&Case { elsewhere: vec!["b".to_owned(), "c".to_owned()], ..case });
        assert!(text.contains("another host (b, c)") && text.contains("the launcher's own message names it"), "{text}");
    }
}
