//! A chart as an SVG file.

use super::drawing::{ChartDrawing, Rgb, Shape, TextAnchor};
use super::plot_font::FAMILIES;
use crate::suite::xml_element::XmlElement;

/// Returns the SVG document of a drawing, shown at `width` x `height` pixels.
pub(super) fn svg_document(drawing: &ChartDrawing, width: u32, height: u32) -> String {
    let shapes: Vec<String> = drawing.shapes.iter().map(shape_element).collect();
    let title = XmlElement::new("title").with_text(&drawing.title);
    let view = format!("0 0 {} {}", number(drawing.width), number(drawing.height));
    let document = XmlElement::new("svg")
        .attribute("xmlns", "http://www.w3.org/2000/svg")
        .attribute("width", &width.to_string())
        .attribute("height", &height.to_string())
        .attribute("viewBox", &view)
        .attribute("role", "img")
        .attribute("font-family", FAMILIES)
        .with_xml(&format!("\n{title}\n{}\n", shapes.join("\n")));
    format!("{document}\n")
}

fn shape_element(shape: &Shape) -> String {
    match shape {
        Shape::Rectangle {
            left,
            top,
            width,
            height,
            fill,
        } => XmlElement::new("rect")
            .attribute("x", &number(*left))
            .attribute("y", &number(*top))
            .attribute("width", &number(*width))
            .attribute("height", &number(*height))
            .attribute("fill", &fill.to_string())
            .empty(),
        Shape::Line {
            points,
            color,
            width,
            dash,
        } => line_element(points, *color, *width, dash),
        Shape::Area {
            points,
            color,
            opacity,
        } => XmlElement::new("polygon")
            .attribute("points", &point_list(points))
            .attribute("fill", &color.to_string())
            .attribute("fill-opacity", &number(*opacity))
            .empty(),
        Shape::Circle {
            center,
            radius,
            fill,
            edge,
        } => XmlElement::new("circle")
            .attribute("cx", &number(center.0))
            .attribute("cy", &number(center.1))
            .attribute("r", &number(*radius))
            .attribute("fill", &fill.to_string())
            .attribute("stroke", &edge.to_string())
            .attribute("stroke-width", "1.5")
            .empty(),
        Shape::Text {
            x,
            y,
            text,
            size,
            color,
            anchor,
        } => XmlElement::new("text")
            .attribute("x", &number(*x))
            .attribute("y", &number(*y))
            .attribute("font-size", &number(*size))
            .attribute("fill", &color.to_string())
            .attribute("text-anchor", anchor_name(*anchor))
            .with_text(text),
    }
}

fn line_element(points: &[(f64, f64)], color: Rgb, width: f64, dash: &[f64]) -> String {
    let element = XmlElement::new("polyline")
        .attribute("points", &point_list(points))
        .attribute("fill", "none")
        .attribute("stroke", &color.to_string())
        .attribute("stroke-width", &number(width))
        .attribute("stroke-linejoin", "round");
    let dashes: Vec<String> = dash.iter().map(|length| number(*length)).collect();
    match dashes.is_empty() {
        true => element.empty(),
        false => element
            .attribute("stroke-dasharray", &dashes.join(" "))
            .empty(),
    }
}

fn anchor_name(anchor: TextAnchor) -> &'static str {
    match anchor {
        TextAnchor::Start => "start",
        TextAnchor::Middle => "middle",
        TextAnchor::End => "end",
    }
}

fn point_list(points: &[(f64, f64)]) -> String {
    let points = points.iter();
    let points = points.map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    points.collect::<Vec<_>>().join(" ")
}

/// A coordinate with at most two decimals.
fn number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    // Adding zero turns -0 into 0.
    format!("{}", rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_of_known_shapes_is_complete() {
        let drawing = ChartDrawing {
            width: 100.0,
            height: 50.0,
            title: "a <b>".to_owned(),
            shapes: vec![
                Shape::Line {
                    points: vec![(0.0, 1.0), (2.5, 3.256)],
                    color: Rgb(0, 128, 255),
                    width: 2.0,
                    dash: &[7.0, 4.0],
                },
                Shape::Text {
                    x: 1.0,
                    y: 2.0,
                    text: "p99 & max".to_owned(),
                    size: 12.0,
                    color: Rgb(1, 2, 3),
                    anchor: TextAnchor::End,
                },
            ],
        };
        let document = svg_document(&drawing, 200, 100);
        let head = concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100" "#,
            r#"viewBox="0 0 100 50" role="img" font-family="Arimo, 'Liberation Sans', Arial, "#,
            r#"Helvetica, sans-serif">"#,
        );
        let line = concat!(
            r##"<polyline points="0,1 2.5,3.26" fill="none" stroke="#0080ff" stroke-width="2" "##,
            r#"stroke-linejoin="round" stroke-dasharray="7 4"/>"#,
        );
        let text = concat!(
            r##"<text x="1" y="2" font-size="12" fill="#010203" text-anchor="end">"##,
            "p99 &amp; max</text>",
        );
        let expected = [head, "<title>a &lt;b&gt;</title>", line, text, "</svg>"];
        assert_eq!(document.lines().collect::<Vec<_>>(), expected);
    }
}
