//! Elements of XML and HTML, whose attributes and text are escaped.

use iosonde_job::escape_control_characters;

/// An element with its attributes.
pub(crate) struct XmlElement {
    name: &'static str,
    /// Attributes as written in a tag, each after a space.
    attributes: String,
}

impl XmlElement {
    /// Creates an element without attributes.
    pub(crate) fn new(name: &'static str) -> XmlElement {
        XmlElement {
            name,
            attributes: String::new(),
        }
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, name: &str, value: &str) -> XmlElement {
        let value = escape_xml(value);
        self.attributes.push_str(&format!(" {name}=\"{value}\""));
        self
    }

    /// Returns the tag that opens the element.
    pub(crate) fn opening_tag(&self) -> String {
        format!("<{}{}>", self.name, self.attributes)
    }

    /// Returns the element without content.
    pub(crate) fn empty(&self) -> String {
        format!("<{}{}/>", self.name, self.attributes)
    }

    /// Returns the element around a text.
    pub(crate) fn with_text(&self, text: &str) -> String {
        self.with_xml(&escape_xml(text))
    }

    /// Returns the element around other elements.
    pub(crate) fn with_xml(&self, xml: &str) -> String {
        format!("{}{xml}</{}>", self.opening_tag(), self.name)
    }
}

/// Escapes text for XML. XML cannot represent most control characters.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::new();
    for sign in escape_control_characters(text).chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            sign => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::XmlElement;

    #[test]
    fn attributes_and_text_are_escaped() {
        let element = XmlElement::new("error").attribute("message", "a<b & \"c\"");
        assert_eq!(
            element.with_text("1 > 0\u{ffff}"),
            "<error message=\"a&lt;b &amp; &quot;c&quot;\">1 &gt; 0 </error>"
        );
        assert_eq!(
            element.opening_tag(),
            "<error message=\"a&lt;b &amp; &quot;c&quot;\">"
        );
    }

    #[test]
    fn element_without_attributes_has_its_name_only() {
        let element = XmlElement::new("system-err");
        assert_eq!(element.empty(), "<system-err/>");
        assert_eq!(
            element.with_xml(&XmlElement::new("a").empty()),
            "<system-err><a/></system-err>"
        );
    }
}
