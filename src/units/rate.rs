use super::UnitError;

const RATE: &str = "a rate above zero such as 53.8GB/s, 900MB/s or 200Gbit/s";
const TIME: &str = "a time such as 57us, 1.5ms, 300ns or 2s";

/// A plain decimal number and the unit behind it; no sign and no exponent.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    number.parse().ok().map(|number| (number, unit.trim()))
}

/// Parse a rate into bytes per second: `53.8GB/s` (1e9 bytes), `200Gbit/s` (1e9 bits). Prefixes are decimal; zero is refused, and so are
/// `Gb/s` and `Gbps`, which some read as bits and some as bytes.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let refuse = || UnitError::new(text, RATE);
    let (number, unit) = split(text).ok_or_else(refuse)?;
    let (prefix, per_byte) = match (unit.strip_suffix("bit/s"), unit.strip_suffix("B/s")) {
        (Some(prefix), _) => (prefix, 8.0),
        (_, Some(prefix)) => (prefix, 1.0),
        _ => return Err(refuse()),
    };
    let scale = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return Err(refuse()),
    };
    let rate = number * scale / per_byte;
    if rate > 0.0 && rate.is_finite() { Ok(rate) } else { Err(refuse()) }
}

/// Parse a time into seconds: `57us` (or `57µs`), `300ns`, `1.5ms`, `2s`, `0s`.
pub fn parse_seconds(text: &str) -> Result<f64, UnitError> {
    let refuse = || UnitError::new(text, TIME);
    let (number, unit) = split(text).ok_or_else(refuse)?;
    // Divided, not multiplied: 57us is then the double nearest to 57e-6.
    let parts = match unit {
        "s" => 1.0,
        "ms" => 1e3,
        "us" | "µs" | "μs" => 1e6,
        "ns" => 1e9,
        _ => return Err(refuse()),
    };
    let seconds: f64 = number / parts;
    if seconds.is_finite() { Ok(seconds) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal_bytes_or_bits() {
        let read = [("53.8GB/s", 53.8e9), ("200Gbit/s", 25e9), (" 900 MB/s ", 9e8), ("1B/s", 1.0), ("8kbit/s", 1e3), (".5TB/s", 5e11)];
        for (text, rate) in read {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
        }
        for bad in ["", "5", "GB/s", "-5GB/s", "0GB/s", "5GiB/s", "5Gb/s", "5Gbps", "1e3GB/s", "1.2.3GB/s", "5 G B/s"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_name_their_unit() {
        for (text, seconds) in [("57us", 57e-6), ("1.5 ms", 1.5e-3), ("300ns", 300e-9), ("2s", 2.0), ("0s", 0.0), ("4µs", 4e-6)] {
            assert_eq!(parse_seconds(text), Ok(seconds), "{text}");
        }
        for bad in ["", "5", "us", "-1us", "5m", "5 min", "..s"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }
}
