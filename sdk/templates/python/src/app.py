"""{{kinds}} without an owner.

When an object fails at night, its label tells whom to call.
"""

import json

import wit_world
from wit_world.imports.types import (
    Finding, Interest, Message, Metadata, Operation, Severity, Step, Verdict,
)

NO_OWNER = Message(
    code="TEAM0001",
    severity=Severity.DENY,
    title="the object has no owner",
    explanation="When it fails at night, nobody knows whom to call.",
    hint="name the team in a label under metadata.labels, for example owner: network",
)

SETTINGS = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "description": "The label that names the owner; unset: owner."}
    },
    "additionalProperties": False,
}

KINDS = [
{{#kinds}}
    ("{{group}}", "{{kind}}"),
{{/kinds}}
]
WRITES = [Operation.CREATE, Operation.UPDATE]
READS = ["/metadata/labels"]  # all that the policy gets to see of an object, as JSON text


class WitWorld(wit_world.WitWorld):
    def describe(self):
        return Metadata(
            name="{{name}}", version="0.1.0", summary="every object names its owner",
            interests=[Interest(Step.VALIDATE, group, kind, WRITES, READS) for group, kind in KINDS],
            indexes=[], messages=[NO_OWNER], settings_schema=json.dumps(SETTINGS), claims=False,
        )

    def validate(self, request, settings):
        label = json.loads(settings).get("label", "owner")
        verdict = Verdict(findings=[], claims=[])
        for part in request.object:
            if not (json.loads(part or "null") or {}).get(label):
                text = f"{request.kind} has no label {label}"
                verdict.findings.append(
                    Finding(NO_OWNER.code, NO_OWNER.severity, "/metadata/labels", text, NO_OWNER.hint)
                )
        return verdict

    def mutate(self, request, settings):
        return []  # this policy patches nothing
