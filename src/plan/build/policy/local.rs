use std::collections::HashMap;

use super::super::{Answer, Candidate, Policy, Request};

/// A holder in the target's own process, where endpoints tell; of others the one whose process (without endpoints: whose location)
/// has the fewest bytes to send so far. What regions with a single holder load is counted before any choice, since nothing can move
/// it. Ties go to the lowest location; copies inside a process are no load. Where an element size is missing, elements are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalFirst;

/// The same with every load counted in its turn, so that early choices do not know of what comes: the reference's order, as far as
/// it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalFirstInOrder;

impl Policy for LocalFirst {
    fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        least_loaded(requests, true)
    }
}

impl Policy for LocalFirstInOrder {
    fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        least_loaded(requests, false)
    }
}

/// Who carries the load of sending.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    Process(usize),
    Location(i64),
}

impl Sender {
    fn of(candidate: &Candidate) -> Self {
        candidate.process.map_or(Self::Location(candidate.location), Self::Process)
    }
}

fn least_loaded(requests: &[Request], fixed_first: bool) -> Vec<Answer> {
    let sized = requests.iter().all(|request| request.element_size.is_some());
    let weight = |request: &Request| {
        let elements: u64 = request.shape.iter().product();
        u128::from(elements) * u128::from(request.element_size.filter(|_| sized).unwrap_or(1))
    };
    let mut loads: HashMap<Sender, u128> = HashMap::new();
    if fixed_first {
        for request in requests {
            if let [only] = &request.candidates[..]
                && !local(request, only)
            {
                *loads.entry(Sender::of(only)).or_default() += weight(request);
            }
        }
    }
    let choose = |request: &Request| {
        if let Some(near) = request.candidates.iter().find(|candidate| local(request, candidate)) {
            return Answer::Whole(near.location);
        }
        let load = |candidate: &&Candidate| (loads.get(&Sender::of(candidate)).copied().unwrap_or(0), candidate.location);
        let Some(sender) = request.candidates.iter().min_by_key(load) else { return Answer::Parts(Vec::new()) };
        if request.candidates.len() > 1 || !fixed_first {
            *loads.entry(Sender::of(sender)).or_default() += weight(request);
        }
        Answer::Whole(sender.location)
    };
    requests.iter().map(choose).collect()
}

/// The target's own process has it.
fn local(request: &Request, candidate: &Candidate) -> bool {
    candidate.process.is_some() && candidate.process == request.process
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(process: Option<usize>, extent: u64, candidates: &[(i64, Option<usize>)]) -> Request {
        let candidates = candidates.iter().map(|&(location, process)| Candidate { location, process, offset: 0, strides: vec![1] });
        Request {
            parameter: "".into(),
            target: 0,
            process,
            origin: vec![0],
            shape: vec![extent],
            offset: 0,
            strides: vec![1],
            candidates: candidates.collect(),
            element_size: None,
        }
    }

    fn whole(of: &[i64]) -> Vec<Answer> {
        of.iter().copied().map(Answer::Whole).collect()
    }

    #[test]
    fn loads_that_nothing_can_move_are_counted_before_any_choice() {
        let requests = [request(None, 5, &[(0, None), (1, None)]), request(None, 9, &[(0, None)])];
        assert_eq!(LocalFirst.answer(&requests), whole(&[1, 0]));
        assert_eq!(LocalFirstInOrder.answer(&requests), whole(&[0, 0]));
    }

    #[test]
    fn the_own_process_sends_to_itself_and_that_is_no_load() {
        let (a, b) = ((0, Some(4)), (1, Some(5)));
        let requests =
            [request(Some(5), 50, &[a, b]), request(Some(9), 1, &[a, b]), request(Some(9), 1, &[a, b]), request(Some(4), 7, &[a])];
        assert_eq!(LocalFirst.answer(&requests), whole(&[1, 0, 1, 0]));
    }

    #[test]
    fn two_locations_of_a_process_share_its_load() {
        let requests = [request(None, 8, &[(0, Some(0))]), request(None, 8, &[(1, Some(0)), (2, Some(1))])];
        assert_eq!(LocalFirst.answer(&requests), whole(&[0, 2]));
    }

    #[test]
    fn bytes_count_only_where_all_are_known() {
        let of = |size| Request { element_size: size, ..request(None, 4, &[(0, None)]) };
        let free = |size| Request { element_size: size, ..request(None, 1, &[(0, None), (1, None)]) };
        let other = |size| Request { element_size: size, ..request(None, 5, &[(1, None)]) };
        assert_eq!(LocalFirst.answer(&[of(Some(8)), other(Some(1)), free(Some(1))]), whole(&[0, 1, 1]));
        assert_eq!(LocalFirst.answer(&[of(Some(8)), other(None), free(Some(1))]), whole(&[0, 1, 0]));
    }
}
