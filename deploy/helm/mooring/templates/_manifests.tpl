{{/*
Every object of one folder of manifests/, with the release's namespace, labels, image and arguments. The folders are links to
deploy/: rights, probes and mounts have one home, and this chart cannot drift from it.
Takes root, component, values (of the component) and image.
*/}}
{{- define "mooring.manifests" -}}
{{- $given := . -}}
{{- range $path, $_ := .root.Files.Glob (printf "manifests/%s/*.yaml" .component) -}}
{{- if ne (base $path) "kustomization.yaml" -}}
{{- range regexSplit "(?m)^---\\s*$" ($given.root.Files.Get $path) -1 -}}
{{- $object := fromYaml . -}}
{{- if not (eq (include "mooring.leftOut" (dict "object" $object "given" $given)) "true") }}
---
{{ include "mooring.object" (merge (dict "object" $object) $given) }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "mooring.leftOut" -}}
{{- $account := dig "serviceAccount" "create" true .given.values -}}
{{- and (eq .object.kind "ServiceAccount") (not $account) -}}
{{- end -}}

{{- define "mooring.object" -}}
{{- $object := .object -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $account := dig "serviceAccount" "name" "" .values -}}
{{- if has $object.kind (list "ServiceAccount" "Role" "RoleBinding" "Deployment" "DaemonSet") -}}
{{- $_ := set $object.metadata "namespace" $namespace -}}
{{- end -}}
{{- if and $account (eq $object.kind "ServiceAccount") -}}
{{- $_ := set $object.metadata "name" $account -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" $namespace -}}
{{- if $account }}{{ $_ := set . "name" $account }}{{ end -}}
{{- end -}}
{{- $own := dict "app.kubernetes.io/managed-by" .root.Release.Service "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $_ := set $object.metadata "labels" (merge (default dict $object.metadata.labels) $own) -}}
{{- if has $object.kind (list "Deployment" "DaemonSet") -}}
{{- include "mooring.pod" (merge (dict "pod" $object.spec.template.spec) .) -}}
{{- if hasKey .values "replicas" }}{{ $_ := set $object.spec "replicas" .values.replicas }}{{ end -}}
{{- end -}}
{{ toYaml $object }}
{{- end -}}

{{/* Changes a pod in place; prints nothing. */}}
{{- define "mooring.pod" -}}
{{- $given := . -}}
{{- range .pod.containers -}}
{{- include "mooring.container" (merge (dict "container" .) $given) -}}
{{- end -}}
{{- with .root.Values.image.pullSecrets }}{{ $_ := set $given.pod "imagePullSecrets" . }}{{ end -}}
{{- with .values.nodeSelector }}{{ $_ := set $given.pod "nodeSelector" . }}{{ end -}}
{{- end -}}

{{- define "mooring.container" -}}
{{- $container := .container -}}
{{- $tag := default .root.Chart.AppVersion .image.tag -}}
{{- $_ := set $container "image" (printf "%s:%s" .image.repository $tag) -}}
{{- $_ := set $container "imagePullPolicy" .root.Values.image.pullPolicy -}}
{{- with .values.extraArgs }}{{ $_ := set $container "args" (concat $container.args .) }}{{ end -}}
{{- with .values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- end -}}
