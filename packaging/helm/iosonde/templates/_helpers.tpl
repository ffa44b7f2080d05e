{{/* Name of all objects: that of the release, shortened for the Jobs of a CronJob. */}}
{{- define "iosonde.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "iosonde.labels" -}}
app.kubernetes.io/name: iosonde
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "iosonde.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "iosonde.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "set serviceAccount.name, or serviceAccount.create=true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret with a kubeconfig; empty without one. */}}
{{- define "iosonde.secret" -}}
{{- if .Values.secret.kubeconfig -}}
{{- include "iosonde.name" . -}}
{{- else -}}
{{- .Values.secret.existingSecret -}}
{{- end -}}
{{- end -}}
