/// Text from outside made safe for a terminal: control characters and escape sequences' introducers are dropped.
///
/// Host names, device names and imported files are data (design.md, part 6).
pub fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() && !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .collect()
}

/// [`plain`] for every text of a JSON document, but not for its keys.
pub fn plain_json(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = plain(text),
        serde_json::Value::Array(list) => list.iter_mut().for_each(plain_json),
        serde_json::Value::Object(map) => map.values_mut().for_each(plain_json),
        _ => {}
    }
}

/// A rate in GB/s (1e9 bytes per second) with three significant digits, without the unit.
pub fn format_gbps(bytes_per_second: f64) -> String {
    let gbps = bytes_per_second / 1e9;
    if !gbps.is_finite() {
        "–".to_owned()
    } else if gbps >= 99.95 {
        format!("{gbps:.0}")
    } else if gbps >= 9.995 {
        format!("{gbps:.1}")
    } else if gbps >= 0.1 {
        format!("{gbps:.2}")
    } else if gbps >= 0.001 {
        format!("{gbps:.4}")
    } else {
        format!("{gbps:.1e}")
    }
}

/// A short time with its unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`.
pub fn format_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    let (value, unit) = match seconds.abs() {
        s if s < 1e-6 => (seconds * 1e9, "ns"),
        s if s < 1e-3 => (seconds * 1e6, "µs"),
        s if s < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    if value.abs() >= 99.95 {
        format!("{value:.0} {unit}")
    } else if value.abs() >= 9.995 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.2} {unit}")
    }
}

/// A span of a sweep as a clock would show it: `0:07`, `12:30`, `1:02:03`.
pub fn format_duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Ranks as `0-3,7`, the form that [`super::parse_ranks`] reads; `ranks` ascending.
pub fn format_ranks(ranks: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = ranks;
    while let Some(&first) = rest.first() {
        let run = rest.iter().enumerate().take_while(|&(i, &rank)| rank.checked_sub(first) == Some(i)).count();
        parts.push(if run == 1 { first.to_string() } else { format!("{first}-{}", rest[run - 1]) });
        rest = &rest[run..];
    }
    parts.join(",")
}

/// A count with its thousands apart: `1,048,576`.
pub fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (8_192, "8,192"), (1_047_552, "1,047,552")] {
            assert_eq!(format_count(number), text);
        }
    }

    #[test]
    fn escape_codes_lose_their_teeth() {
        assert_eq!(plain("node\u{1b}[31m7\u{7}\r\n"), "node[31m7");
        assert_eq!(plain("a\u{9b}2Jb\u{202e}c"), "a2Jbc");
        assert_eq!(plain("nœud-7"), "nœud-7");
        let mut document = serde_json::json!({"name": "x\u{1b}c", "list": [{"driver": "\u{7}nvidia"}, 3]});
        plain_json(&mut document);
        assert_eq!(document, serde_json::json!({"name": "xc", "list": [{"driver": "nvidia"}, 3]}));
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (rate, text) in [(53.9e9, "53.9"), (275e9, "275"), (7.91e9, "7.91"), (0.0239e9, "0.0239"), (f64::NAN, "–")] {
            assert_eq!(format_gbps(rate), text);
        }
        for (time, text) in [(8.5e-7, "850 ns"), (1.23e-5, "12.3 µs"), (0.004_56, "4.56 ms"), (1.2, "1.20 s")] {
            assert_eq!(format_seconds(time), text);
        }
        assert_eq!(format_duration(3723.0), "1:02:03");
    }

    #[test]
    fn ranks_print_as_they_parse() {
        for text in ["0", "0-3", "0-3,7", "1,3,5-6"] {
            let ranks = super::super::parse_ranks(text, 8).unwrap();
            assert_eq!(format_ranks(&ranks), text);
        }
    }
}
