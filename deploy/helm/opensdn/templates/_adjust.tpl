{{/* Whether an object is of this installation. */}}
{{- define "opensdn.wanted" -}}
{{- $policies := .values.policies }}
{{- $parts := dict "webhook" true "operator" .values.operator.enabled "policies" $policies.enabled "tfOperator" $policies.tfOperator "secretKeys" $policies.secretKeys }}
{{- $isPolicy := eq .entry.object.kind "AdmissionPolicy" }}
{{- if and (has .values.platform .entry.platforms) (get $parts .entry.part) }}
{{- if not (and (hasKey .entry "unless") (get $parts (.entry.unless | default ""))) }}
{{- if not (and $isPolicy (has .entry.object.metadata.name ($policies.without | default list))) }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Moves an object, and what it says of namespaces, to those that were chosen. */}}
{{- define "opensdn.place" -}}
{{- $moved := dict "opensdn-system" .values.namespace "opensdn-operator" .values.operator.namespace }}
{{- $pointer := eq .object.kind "Namespace" | ternary "name" "namespace" }}
{{- $own := get .object.metadata $pointer }}
{{- if hasKey $moved $own }}
{{- $_ := set .object.metadata $pointer (get $moved $own) }}
{{- end }}
{{- range .object.subjects }}
{{- if hasKey $moved (get . "namespace") }}
{{- $_ := set . "namespace" (get $moved .namespace) }}
{{- end }}
{{- end }}
{{- if and (eq .object.kind "ValidatingAdmissionPolicy") (eq .object.metadata.name "opensdn-unique-claims") }}
{{- $user := printf "system:serviceaccount:%s:opensdn-webhook" .values.namespace }}
{{- $validation := first .object.spec.validations }}
{{- $_ := set $validation "expression" (replace "system:serviceaccount:opensdn-system:opensdn-webhook" $user $validation.expression) }}
{{- end }}
{{- end }}

{{/* Writes image, replicas and log level into what runs. */}}
{{- define "opensdn.deployment" -}}
{{- $values := .values }}
{{- $program := eq .object.metadata.name "opensdn-operator" | ternary $values.operator $values.webhook }}
{{- $replicas := eq .object.metadata.name "opensdn-webhook-configuration" | ternary $values.webhook.configurationReplicas $program.replicas }}
{{- if not $replicas }}
{{- $replicas = eq $values.profile "single-node" | ternary 1 .object.spec.replicas }}
{{- end }}
{{- $_ := set .object.spec "replicas" $replicas }}
{{- $pod := .object.spec.template.spec }}
{{- if eq $values.profile "ha" }}
{{- range $pod.topologySpreadConstraints }}
{{- $_ := set . "whenUnsatisfiable" "DoNotSchedule" }}
{{- $_ := set . "minDomains" 3 }}
{{- end }}
{{- end }}
{{- $container := first $pod.containers }}
{{- $written := splitList ":" $container.image }}
{{- $image := $program.image | default dict }}
{{- $name := $image.name | default (first $written) }}
{{- if $values.registry }}
{{- $name = printf "%s/%s" $values.registry $name }}
{{- end }}
{{- $reference := printf "%s:%s" $name ($image.tag | default (last $written)) }}
{{- if $image.digest }}
{{- $reference = printf "%s@%s" $name $image.digest }}
{{- end }}
{{- $_ := set $container "image" $reference }}
{{- if $program.logLevel }}
{{- $_ := set $container "args" (append $container.args (printf "--log=%s,kube=warn" $program.logLevel)) }}
{{- end }}
{{- if $values.imagePullSecrets }}
{{- $secrets := list }}
{{- range $values.imagePullSecrets }}
{{- $secrets = append $secrets (dict "name" .) }}
{{- end }}
{{- $_ := set $pod "imagePullSecrets" $secrets }}
{{- end }}
{{- range $container.env }}
{{- if eq .name "OPENSDN_OPERATOR_NAMESPACES" }}
{{- $_ := set . "value" (join "," $values.operator.watchedNamespaces) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ports of the API server come first in the files; those of DNS stay. */}}
{{- define "opensdn.networkPolicy" -}}
{{- $ports := list }}
{{- range .values.apiServerPorts }}
{{- $ports = append $ports (dict "port" . "protocol" "TCP") }}
{{- end }}
{{- $egress := first .object.spec.egress }}
{{- range $egress.ports }}
{{- if not (has (toString .port) (list "443" "6443")) }}
{{- $ports = append $ports . }}
{{- end }}
{{- end }}
{{- $_ := set $egress "ports" $ports }}
{{- end }}
