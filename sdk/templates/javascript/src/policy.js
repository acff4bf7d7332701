// {{kinds}} without an owner.
//
// When an object fails at night, its label tells whom to call.

const NO_OWNER = {
  code: "TEAM0001",
  severity: "deny",
  title: "the object has no owner",
  explanation: "When it fails at night, nobody knows whom to call.",
  hint: "name the team in a label under metadata.labels, for example owner: network",
};

const SETTINGS = {
  type: "object",
  properties: {
    label: { type: "string", description: "The label that names the owner; unset: owner." },
  },
  additionalProperties: false,
};

const KINDS = [
{{#kinds}}
  { group: "{{group}}", kind: "{{kind}}" },
{{/kinds}}
];

export function describe() {
  // All that the policy gets to see of an object, as JSON text.
  const reads = ["/metadata/labels"];
  const operations = ["create", "update"];
  return {
    name: "{{name}}",
    version: "0.1.0",
    summary: "every object names its owner",
    interests: KINDS.map((kind) => ({ step: "validate", operations, reads, ...kind })),
    indexes: [],
    messages: [NO_OWNER],
    settingsSchema: JSON.stringify(SETTINGS),
    claims: false,
  };
}

export function validate(request, settings) {
  const { label = "owner" } = JSON.parse(settings);
  const findings = [];
  if (request.object.length > 0) {
    const [labels] = request.object.map((part) => JSON.parse(part ?? "null"));
    if (!labels?.[label]) {
      const { code, severity, hint } = NO_OWNER;
      const message = `${request.kind} has no label ${label}`;
      findings.push({ code, severity, pointer: "/metadata/labels", message, hint });
    }
  }
  return { findings, claims: [] };
}

export function mutate() {
  return []; // this policy patches nothing
}
