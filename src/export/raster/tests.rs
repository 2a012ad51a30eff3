use super::*;

const GROUND: Rgb = Rgb(0, 0, 0);
const INK: Rgb = Rgb(255, 255, 255);

fn canvas(rows: &[&str]) -> Canvas {
    let glyph = |c: char| Glyph { symbol: c.to_string(), ..Glyph::default() };
    let cells = rows.iter().flat_map(|row| row.chars().map(glyph)).collect();
    Canvas { width: rows[0].chars().count(), height: rows.len(), cells, background: GROUND, foreground: INK }
}

/// Share of a cell's pixels that are not the ground.
fn inked(pixels: &Pixels, column: usize, row: usize) -> f64 {
    let (wide, high) = (CELL.0 * pixels.scale, CELL.1 * pixels.scale);
    let all = (0..high).flat_map(|y| (0..wide).map(move |x| (column * wide + x, row * high + y)));
    let light: f64 = all.map(|(x, y)| f64::from(pixels.at(x, y).0) / 255.0).sum();
    light / (wide * high) as f64
}

#[test]
fn a_png_has_its_size_and_reads_back_as_it_was_drawn() {
    let mut canvas = canvas(&["ab█", "─▀░"]);
    canvas.cells[0].bg = Some(Rgb(10, 200, 30));
    let drawn = pixels(&canvas);
    assert_eq!((drawn.width, drawn.height), (3 * 20, 2 * 40));
    let file = png(&canvas).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.width as usize, info.height as usize, &bytes), (drawn.width, drawn.height, &drawn.bytes));
    assert_eq!(drawn.at(0, 0), Rgb(10, 200, 30), "the ground of the first cell");
    assert_eq!(drawn.at(41, 1), INK, "a full block");
}

#[test]
fn shapes_fill_what_they_should() {
    let drawn = pixels(&canvas(&["█▄▌░ ⣿⠁x漢"]));
    let share = |column| inked(&drawn, column, 0);
    for (column, expected) in [(0, 1.0), (1, 0.5), (2, 0.5), (3, 0.25), (4, 0.0)] {
        assert!((share(column) - expected).abs() < 0.01, "{column}: {}", share(column));
    }
    assert!((share(5) / share(6) - 8.0).abs() < 0.01, "eight dots and one");
    assert!(share(7) > 0.05 && share(7) < 0.4, "a letter");
    assert!(share(8) > 0.02, "what the font has not is seen all the same");
}

#[test]
fn every_letter_that_the_screen_draws_is_in_the_font_or_a_shape() {
    let font = FontRef::try_from_slice(MONO).unwrap();
    let bold = FontRef::try_from_slice(MONO_BOLD).unwrap();
    let all = "°±²³µ·¼½×éñüαβγδλμσω–‖…‹›⁶←↑→↓↔⇄−√∞≠≡≤≥⌈⌉■□▲△▴▶▸▼▾◀◆○●✓✗";
    for letter in all.chars().chain(' '..='~') {
        for font in [&font, &bold] {
            assert_ne!(font.glyph_id(letter).0, 0, "{letter}");
        }
    }
}

#[test]
fn lines_join_from_cell_to_cell() {
    let drawn = pixels(&canvas(&["╭─┬", "│┼╯"]));
    // The middle of a line is one unit below and right of the cell's: 10.5 of 20 down, 5.5 of 10 across.
    for (x, y) in [(19, 21), (20, 21), (39, 21), (40, 21), (11, 39), (11, 40), (51, 39), (51, 40), (39, 61), (40, 61)] {
        assert!(drawn.at(x, y).0 > 200, "{x} {y}: {:?}", drawn.at(x, y));
    }
    assert_eq!(drawn.at(0, 21), GROUND, "a corner has no line to its left");
}

#[test]
fn bold_is_heavier_and_reverse_and_underline_are_seen() {
    let mut own = canvas(&["mmmm"]);
    own.cells[1].bold = true;
    own.cells[2].reverse = true;
    own.cells[3].underline = true;
    let drawn = pixels(&own);
    let share = |column| inked(&drawn, column, 0);
    assert!(share(1) > share(0) * 1.1 && share(3) > share(0) * 1.1, "{} {} {}", share(0), share(1), share(3));
    assert!((share(0) + share(2) - 1.0).abs() < 0.05, "dark on light");
}

#[test]
fn a_huge_picture_is_drawn_smaller() {
    let blank = Canvas { width: 500, height: 300, cells: Vec::new(), background: GROUND, foreground: INK };
    let drawn = pixels(&blank);
    assert_eq!((drawn.width, drawn.height), (5000, 6000));
}
