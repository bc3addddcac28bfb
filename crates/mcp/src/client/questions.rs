//! Answers to what a server asks while it works: a form is put to the person who is there, if one is. Everything else
//! is declined, in the words that the protocol has for it.

use std::sync::Arc;

use serde_json::{Value, json};

/// Who answers.
#[derive(Clone)]
pub enum QuestionHandler {
    /// Nobody is there: questions are declined.
    Decline,
    /// A person, who is given the params of an `elicitation/create` and gives its result. Takes its time.
    Person(Arc<dyn Fn(&Value) -> Value + Send + Sync>),
}

/// An error in answer to a question.
pub(super) type Declined = (i64, &'static str);

impl QuestionHandler {
    /// What we can be asked.
    pub fn capabilities(&self) -> Value {
        match self {
            Self::Decline => json!({}),
            Self::Person(_) => json!({"elicitation": {}}),
        }
    }

    pub async fn answer(&self, method: &str, params: &Value) -> Result<Value, Declined> {
        match (method, self) {
            ("ping", _) => Ok(json!({})),
            ("roots/list", _) => Ok(json!({"roots": []})),
            ("elicitation/create", Self::Person(person)) if params["mode"].as_str().unwrap_or("form") == "form" => {
                let (person, params) = (person.clone(), params.clone());
                let asked = tokio::task::spawn_blocking(move || person(&params)).await;
                Ok(asked.unwrap_or_else(|_| json!({"action": "cancel"})))
            }
            ("elicitation/create", _) => Ok(json!({"action": "decline"})),
            // 2025-11-25, sampling: a person who says no is error -1.
            ("sampling/createMessage", _) => Err((-1, "declined: nobody here runs a model")),
            _ => Err((-32601, "this client has no such method")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_nobody_is_everything_is_declined() {
        let nobody = QuestionHandler::Decline;
        assert_eq!(nobody.answer("elicitation/create", &json!({})).await, Ok(json!({"action": "decline"})));
        assert_eq!(nobody.answer("roots/list", &json!({})).await, Ok(json!({"roots": []})));
        assert_eq!(nobody.answer("sampling/createMessage", &json!({})).await.unwrap_err().0, -1);
        assert_eq!(nobody.answer("tasks/get", &json!({})).await.unwrap_err().0, -32601);
    }

    #[tokio::test]
    async fn a_person_is_asked_for_forms_and_for_nothing_else() {
        let person = QuestionHandler::Person(Arc::new(|params| params["message"].clone()));
        assert_eq!(person.answer("elicitation/create", &json!({"message": "hello"})).await, Ok(json!("hello")));
        let page = json!({"mode": "url", "url": "https://example.com/"});
        assert_eq!(person.answer("elicitation/create", &page).await, Ok(json!({"action": "decline"})));
        assert_eq!(person.answer("sampling/createMessage", &json!({})).await.unwrap_err().0, -1);
    }
}
