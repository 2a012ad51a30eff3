use super::Value;

/// A value in eight bytes: a number, or a not-a-number that says what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed(u64);

/// Bits of a quiet NaN that no computation makes; the state is added.
const STATES: u64 = 0x7ff8_7070_0000_0000;

impl Packed {
    pub const MISSING: Self = Self(STATES);

    pub const fn get(self) -> Value {
        match self.0.wrapping_sub(STATES) {
            0 => Value::Missing,
            1 => Value::Waived,
            2 => Value::Timeout,
            3 => Value::Corrupt,
            _ => Value::Known(f64::from_bits(self.0)),
        }
    }
}

impl From<Value> for Packed {
    fn from(value: Value) -> Self {
        match value {
            Value::Missing => Self(STATES),
            Value::Waived => Self(STATES + 1),
            Value::Timeout => Self(STATES + 2),
            Value::Corrupt => Self(STATES + 3),
            Value::Known(number) => Self(number.to_bits()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let states = [Value::Missing, Value::Waived, Value::Timeout, Value::Corrupt];
        let numbers = [0.0, -1.5, 1e-300, 5e10, f64::INFINITY].map(Value::Known);
        for value in states.into_iter().chain(numbers) {
            assert_eq!(Packed::from(value).get(), value);
        }
        assert!(matches!(Packed::from(Value::Known(f64::NAN)).get(), Value::Known(number) if number.is_nan()));
        assert_eq!((size_of::<Packed>(), Packed::MISSING.get()), (8, Value::Missing));
    }
}
