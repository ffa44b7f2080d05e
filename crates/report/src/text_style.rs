//! Characters and colours of text for a terminal. A colour repeats what the words say.

/// Characters and colours that the destination of a text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether characters beyond ASCII are shown.
    pub(crate) utf8: bool,
    /// Whether colours are shown.
    pub(crate) color: bool,
}

/// Least range of a sparkline that spans all bars, as a share of its highest value. Values that
/// vary less differ by a few bars, so that noise does not look like a trend.
const SPARK_RANGE_SHARE: f64 = 0.25;

/// Kind of the values of a sparkline, from which its scale follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SparkScale {
    /// Rates, latencies and other amounts: a share of the highest value spans all bars.
    Amount,
    /// Shares in per cent: the same share of 100 % spans all bars.
    Percent,
}

impl SparkScale {
    fn least_range(self, highest: f64) -> f64 {
        match self {
            SparkScale::Amount => SPARK_RANGE_SHARE * highest.abs(),
            SparkScale::Percent => SPARK_RANGE_SHARE * 100.0,
        }
    }
}

/// TextRole of a word that has a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRole {
    /// The figure or the outcome is good.
    Good,
    /// The figure or the outcome is in doubt.
    Unsure,
    /// The figure or the outcome is bad.
    Bad,
}

impl TextStyle {
    /// ASCII without colours.
    pub(crate) const PLAIN: TextStyle = TextStyle {
        utf8: false,
        color: false,
    };

    /// Returns the style for a locale: the first value that is set of `LC_ALL`, `LC_CTYPE` and
    /// `LANG`. Without a locale the style is ASCII, like the locale `C`.
    #[must_use]
    pub fn for_locale(locale: &str, color: bool) -> TextStyle {
        let locale = locale.to_ascii_lowercase();
        TextStyle {
            utf8: locale.contains("utf-8") || locale.contains("utf8"),
            color,
        }
    }

    /// Returns the sign between a figure and half its interval.
    #[must_use]
    pub fn plus_minus(self) -> &'static str {
        if self.utf8 { "±" } else { "+-" }
    }

    /// Returns the sign for characters that are left out.
    pub(crate) fn ellipsis(self) -> &'static str {
        if self.utf8 { "…" } else { "..." }
    }

    /// Returns a sparkline with a bar for each value. The bars span the range of the values, or the
    /// least range of the scale if that is wider: equal values have the middle bar, so that steady
    /// series of adjacent rows stay apart. Zeros have the lowest one.
    pub(crate) fn sparkline(self, values: &[f64], scale: SparkScale) -> String {
        let bars = self.bars();
        let top = (bars.len() - 1) as f64;
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = (highest - lowest).max(scale.least_range(highest));
        let middle = f64::midpoint(lowest, highest);
        let is_empty = lowest.abs().max(highest.abs()) < f64::MIN_POSITIVE;
        let bar = |value: &f64| {
            let offset = (value - middle) / range.max(f64::MIN_POSITIVE);
            let level = if is_empty {
                0.0
            } else {
                top / 2.0 + top * offset
            };
            bars[level.round().clamp(0.0, top) as usize]
        };
        values.iter().map(bar).collect()
    }

    /// Returns the bars of a sparkline, from the lowest to the highest. The full block is not one
    /// of them: those of adjacent rows would join.
    fn bars(self) -> [char; 7] {
        const BLOCKS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];
        const ASCII: [char; 7] = ['.', ':', '-', '=', '+', '*', '#'];
        if self.utf8 { BLOCKS } else { ASCII }
    }

    /// Returns the shades of a heat table, from the lowest to the highest rate.
    pub(crate) fn shades(self) -> [char; 5] {
        const BLOCKS: [char; 5] = ['·', '░', '▒', '▓', '█'];
        const ASCII: [char; 5] = ['.', ':', '-', '=', '#'];
        if self.utf8 { BLOCKS } else { ASCII }
    }

    /// Returns the text in the colour of its meaning. The text must hold no control characters.
    pub(crate) fn paint(self, meaning: TextRole, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let color = match meaning {
            TextRole::Good => 32,
            TextRole::Unsure => 33,
            TextRole::Bad => 31,
        };
        format!("\x1b[{color}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_without_utf8_is_ascii() {
        for locale in ["de_DE.UTF-8", "C.utf8", "en_US.UTF8"] {
            let style = TextStyle::for_locale(locale, false);
            assert!(style.utf8, "{locale}");
            assert_eq!(style.plus_minus(), "±");
            assert_eq!(style.ellipsis(), "…");
        }
        for locale in ["", "C", "POSIX", "de_DE.ISO-8859-1"] {
            let style = TextStyle::for_locale(locale, false);
            assert!(!style.utf8, "{locale}");
            assert!(style.plus_minus().is_ascii());
            assert!(style.ellipsis().is_ascii());
            assert!(style.bars().iter().all(char::is_ascii));
            assert!(style.shades().iter().all(char::is_ascii));
        }
    }

    #[test]
    fn sparkline_spans_its_range_and_is_level_for_noise() {
        let utf8 = TextStyle::for_locale("C.UTF-8", false);
        let amount = SparkScale::Amount;
        for (values, scale, blocks, ascii) in [
            (vec![0.0, 1.5, 3.0], amount, "▁▄▇", ".=#"),
            (vec![100.0, 60.0], amount, "▇▁", "#."),
            // A range below the least one spans fewer bars.
            (vec![100.0, 88.0], amount, "▅▃", "+-"),
            (vec![100.0, 98.0, 99.0], amount, "▄▄▄", "==="),
            (vec![9.0, 9.0], amount, "▄▄", "=="),
            (vec![0.0, 0.0], amount, "▁▁", ".."),
            (Vec::new(), amount, "", ""),
            // The maximum of a share does not count: one point of 2 % is no change.
            (vec![1.0, 2.0], SparkScale::Percent, "▄▄", "=="),
            (vec![10.0, 60.0], SparkScale::Percent, "▁▇", ".#"),
        ] {
            assert_eq!(utf8.sparkline(&values, scale), blocks);
            assert_eq!(TextStyle::PLAIN.sparkline(&values, scale), ascii);
        }
    }

    #[test]
    fn sparkline_of_a_fall_descends_in_steps() {
        let values: Vec<f64> = (0..8).map(|index| 100.0 - 3.0 * f64::from(index)).collect();
        let utf8 = TextStyle::for_locale("C.UTF-8", false);
        let line = utf8.sparkline(&values, SparkScale::Amount);
        let bars: Vec<char> = line.chars().collect();
        assert!(bars.is_sorted_by(|a, b| a >= b), "{line}");
        assert!(bars.first() > bars.last(), "{line}");
    }

    #[test]
    fn colour_needs_a_terminal_that_shows_it() {
        let plain = TextStyle::for_locale("C", false);
        assert_eq!(plain.paint(TextRole::Bad, "falling"), "falling");
        let colored = TextStyle::for_locale("C", true);
        let meanings = [TextRole::Good, TextRole::Unsure, TextRole::Bad];
        let mut painted = meanings.map(|meaning| colored.paint(meaning, "x")).to_vec();
        assert!(painted.iter().all(|text| text.ends_with("x\x1b[0m")));
        painted.dedup();
        assert_eq!(painted.len(), 3);
    }
}
