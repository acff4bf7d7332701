// {{kinds}} without an owner.
//
// When an object fails at night, its label tells whom to call.

#include "policy.h" // generated from wit/policy.wit

#define TEXT(literal) {(uint8_t *)(literal), sizeof(literal) - 1}
#define LIST(array) {array, sizeof(array) / sizeof(*(array))}

static opensdn_policy_types_operation_t writes[] = {
    OPENSDN_POLICY_TYPES_OPERATION_CREATE, OPENSDN_POLICY_TYPES_OPERATION_UPDATE};

// All that the policy gets to see of an object, as JSON text.
static policy_string_t reads[] = {TEXT("/metadata/labels/owner")};

static opensdn_policy_types_interest_t interests[] = {
{{#kinds}}
    {OPENSDN_POLICY_TYPES_STEP_VALIDATE, TEXT("{{group}}"), TEXT("{{kind}}"), LIST(writes), LIST(reads)},
{{/kinds}}
};

#define NO_OWNER TEXT("TEAM0001"), OPENSDN_POLICY_TYPES_SEVERITY_DENY
#define HINT TEXT("name the team in a label under metadata.labels, for example owner: network")

static opensdn_policy_types_message_t messages[] = {
    {NO_OWNER, TEXT("the object has no owner"),
     TEXT("When it fails at night, nobody knows whom to call."), HINT},
};

static opensdn_policy_types_finding_t no_owner[] = {
    {NO_OWNER, TEXT("/metadata/labels"), TEXT("the object has no label owner"), HINT},
};

void exports_policy_describe(policy_metadata_t *metadata) {
  *metadata = (policy_metadata_t){
      .name = TEXT("{{name}}"),
      .version = TEXT("0.1.0"),
      .summary = TEXT("every object names its owner"),
      .interests = LIST(interests),
      .messages = LIST(messages),
      .settings_schema = TEXT("{\"type\":\"object\",\"additionalProperties\":false}"),
  };
}

bool exports_policy_validate(policy_request_t *request, policy_string_t *settings,
                             policy_verdict_t *verdict, policy_string_t *failure) {
  (void)settings, (void)failure; // false, and why in failure: the policy could not tell
  *verdict = (policy_verdict_t){0};
  if (request->object.len == 0) return true;
  policy_option_string_t owner = request->object.ptr[0];
  // A text has its quotation marks: an empty one has two letters.
  bool is_text = owner.is_some && owner.val.len > 2 && owner.val.ptr[0] == '"';
  if (!is_text) verdict->findings = (opensdn_policy_types_list_finding_t)LIST(no_owner);
  return true;
}
