//! The Fits tab.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{HitMap, Scene};

/// Draw the tab.
pub fn draw(_scene: &Scene<'_>, _buf: &mut Buffer, _area: Rect, _hits: &mut HitMap) {}
