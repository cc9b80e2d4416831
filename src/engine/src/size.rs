//! Numbers of bytes as people write them.

/// A number of bytes such as `512`, `64MiB`, `2G` or `1.5GB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return None,
    };
    let bytes = number * factor;
    (bytes.is_finite() && bytes < 1e18).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let cases = [
            ("0", Some(0)),
            ("512", Some(512)),
            ("64MiB", Some(64 << 20)),
            ("2G", Some(2 << 30)),
            ("1.5kb", Some(1500)),
        ];
        for (text, want) in cases {
            assert_eq!(parse_size(text), want, "{text}");
        }
        assert_eq!(parse_size("GiB"), None);
        assert_eq!(parse_size("-1"), None);
    }
}
