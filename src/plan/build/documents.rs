//! What a policy outside this program is asked, and what it answers, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answer, Answers, Part, Request};
use crate::plan::{At, PlanError};

const REQUESTS: &str = "toposcope.requests/1";
const ANSWERS: &str = "toposcope.answers/1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPart {
    logical_origin: Vec<u64>,
    shape: Vec<u64>,
    source_location: i64,
}

/// Requests as JSON, in their order.
pub fn write_requests(requests: &[Request]) -> String {
    let own = requests.iter().map(|request| {
        let candidates: Vec<Value> = request
            .candidates
            .iter()
            .map(|own| json!({"location": own.location, "process": own.process, "offset": own.offset, "strides": own.strides}))
            .collect();
        let elements: u64 = request.shape.iter().product();
        json!({
            "parameter": *request.parameter,
            "target_location": request.target,
            "target_process": request.process,
            "logical_origin": request.origin,
            "shape": request.shape,
            "target_offset": request.offset,
            "target_strides": request.strides,
            "candidates": candidates,
            "bytes": request.element_size.map(|size| elements.saturating_mul(size)),
        })
    });
    json!({"format": REQUESTS, "requests": own.collect::<Vec<_>>()}).to_string()
}

/// Answers from JSON, in the order of the requests: a location each, or a list of parts (`logical_origin`, `shape`,
/// `source_location`). Whether they fit the requests is checked when a plan is built.
///
/// # Errors
/// What is no JSON or has another form, with the number of the answer.
pub fn read_answers(text: &str) -> Result<Answers, PlanError> {
    let fail = |what: String| PlanError::Policy { place: At { side: "answers", ..At::default() }, what };
    let value: Value = serde_json::from_str(text).map_err(|error| fail(format!("no JSON: {error}")))?;
    let format = value.get("format").and_then(Value::as_str);
    let Some(answers) = value.get("answers").and_then(Value::as_array).filter(|_| format == Some(ANSWERS)) else {
        return Err(fail(format!("expected {{\"format\": \"{ANSWERS}\", \"answers\": [..]}}, one answer a request")));
    };
    let one = |(number, answer): (usize, &Value)| match answer {
        Value::Array(parts) => {
            let parts = parts.iter().enumerate().map(|(at, part)| {
                let StoredPart { logical_origin: origin, shape, source_location: source } =
                    serde_json::from_value(part.clone()).map_err(|error| fail(format!("answer {number}, part {at}: {error}")))?;
                Ok(Part { origin, shape, source })
            });
            Ok(Answer::Parts(parts.collect::<Result<_, PlanError>>()?))
        }
        answer => {
            let what = || format!("answer {number}: {answer} is neither a location (a whole number) nor a list of parts");
            answer.as_i64().map(Answer::Whole).ok_or_else(|| fail(what()))
        }
    };
    Ok(Answers(answers.iter().enumerate().map(one).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_locations_or_parts_and_anything_else_is_told_by_its_number() {
        let text = |answers: &str| format!("{{\"format\": \"{ANSWERS}\", \"answers\": [{answers}]}}");
        let part = r#"{"logical_origin": [0, 2], "shape": [1, 2], "source_location": 3}"#;
        let answers = read_answers(&text(&format!("7, [{part}]"))).unwrap();
        let parts = vec![Part { origin: vec![0, 2], shape: vec![1, 2], source: 3 }];
        assert_eq!(answers, Answers(vec![Answer::Whole(7), Answer::Parts(parts)]));
        let told = |answers: &str| read_answers(&text(answers)).unwrap_err().to_string();
        assert!(told("1, true").contains("answer 1: true"), "{}", told("1, true"));
        assert!(told("1.5").contains("answer 0: 1.5"));
        assert!(told(&format!("1, [{part}, {{\"shape\": [1]}}]")).contains("answer 1, part 1"));
        assert!(read_answers("[1]").unwrap_err().to_string().contains(ANSWERS));
    }
}
