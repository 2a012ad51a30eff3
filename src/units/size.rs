use super::UnitError;

const EXPECTED: &str = "a size such as 4096, 4KiB, 64M or 1GiB";

/// Parse one size in bytes: `4096`, `4KiB`, `4K`, `64M`, `1GiB` (all binary; `kB` and `MB` are refused as ambiguous).
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let number: u64 = number.parse().map_err(|_| UnitError::new(text, EXPECTED))?;
    let shift = match unit.trim() {
        "" | "B" => 0,
        "K" | "k" | "Ki" | "KiB" => 10,
        "M" | "Mi" | "MiB" => 20,
        "G" | "Gi" | "GiB" => 30,
        "T" | "Ti" | "TiB" => 40,
        "P" | "Pi" | "PiB" => 50,
        "E" | "Ei" | "EiB" => 60,
        _ => return Err(UnitError::new(text, EXPECTED)),
    };
    number.checked_mul(1_u64 << shift).ok_or_else(|| UnitError::new(text, "a size that fits in 64 bits"))
}

/// Parse a list of sizes: `4KiB,1M`, a range `4KiB..256MiB` in steps of 4, or both mixed.
///
/// Ascending, without repeats; zero and an empty list are refused.
pub fn parse_sizes(text: &str) -> Result<Vec<u64>, UnitError> {
    let mut sizes = Vec::new();
    for part in text.split(',') {
        if let Some((from, to)) = part.split_once("..") {
            let (from, to) = (parse_size(from)?, parse_size(to)?);
            if from == 0 || from > to {
                return Err(UnitError::new(part, "a range from a smaller to a larger size, such as 4KiB..256MiB"));
            }
            let mut size = from;
            while size <= to {
                sizes.push(size);
                match size.checked_mul(4) {
                    Some(next) => size = next,
                    None => break,
                }
            }
            if sizes.last() != Some(&to) {
                sizes.push(to);
            }
        } else {
            sizes.push(parse_size(part)?);
        }
    }
    if sizes.contains(&0) {
        return Err(UnitError::new(text, "a list of sizes of at least one byte"));
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// A size in the largest binary unit that divides it: `4 KiB`, `64 MiB`, `1000 B`.
pub fn format_size(bytes: u64) -> String {
    let units: [(u32, &str); 6] = [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in units {
        // Exact, as long as it is short: 4 KiB, 1536 MiB, but not 23917272 KiB.
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) && bytes >> shift < 10_240 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    for (shift, unit) in units {
        if bytes >= 10 << shift || (shift > 10 && bytes >= 10_000 << (shift - 10)) {
            let amount = bytes as f64 / (1_u64 << shift) as f64;
            // Four digits say enough.
            return if amount >= 1000.0 { format!("{amount:.0} {unit}") } else { format!("{amount:.1} {unit}") };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("4KiB", 4096), ("4k", 4096), ("64M", 64 << 20), (" 1 GiB ", 1 << 30), ("8E", 1 << 63)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "KiB", "4kB", "-1", "4.5M", "99999999999T", "16E"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_step_by_four_and_end_where_told() {
        assert_eq!(parse_sizes("4KiB..256KiB"), Ok(vec![4096, 16384, 65536, 262_144]));
        assert_eq!(parse_sizes("1..10"), Ok(vec![1, 4, 10]));
        assert_eq!(parse_sizes("1M,4K,4K"), Ok(vec![4096, 1 << 20]));
        for bad in ["", "0", "1M..4K", "0..4K", "1..", ","] {
            assert!(parse_sizes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_print_in_the_unit_that_fits() {
        for (bytes, text) in [
            (8, "8 B"),
            (4096, "4 KiB"),
            (1 << 28, "256 MiB"),
            (1000, "1000 B"),
            (300_000_000, "286.1 MiB"),
            (23_917_272 << 10, "22.8 GiB"),
            ((5000 << 20) + 1, "5000 MiB"),
            (1 << 63, "8 EiB"),
            ((1 << 63) - 1, "8192 PiB"),
            (u64::MAX, "16.0 EiB"),
            (3 << 50, "3 PiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
