use super::UnitError;

/// Parse a set of ranks below `world`: `0-7,12`. Ascending, without repeats.
pub fn parse_ranks(text: &str, world: usize) -> Result<Vec<usize>, UnitError> {
    let expected = || format!("a set of ranks below {world}, such as 0-3,7");
    let number = |part: &str| part.trim().parse::<usize>().map_err(|_| UnitError::new(text, expected()));
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(part)?, number(part)?),
        };
        if from > to || to >= world {
            return Err(UnitError::new(text, expected()));
        }
        ranks.extend(from..=to);
    }
    ranks.sort_unstable();
    ranks.dedup();
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_ranks_mix() {
        assert_eq!(parse_ranks("0-2,7,1", 8), Ok(vec![0, 1, 2, 7]));
        for bad in ["", "8", "3-1", "a", "0-", "-1", "0-99999999999999999999"] {
            assert!(parse_ranks(bad, 8).is_err(), "{bad}");
        }
    }
}
