{{- define "lifthouse.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "lifthouse.selectorLabels" -}}
app.kubernetes.io/name: lifthouse
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "lifthouse.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lifthouse.labels" -}}
{{ include "lifthouse.selectorLabels" . }}
{{ include "lifthouse.commonLabels" . }}
{{- end -}}

{{- define "lifthouse.image" -}}
{{- $tag := printf "%s%s" .Chart.AppVersion (ternary "-embedded" "" (eq .Values.mode "embedded")) -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $tag .tag }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "lifthouse.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "lifthouse.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "lifthouse.podSecurityContext" -}}
runAsNonRoot: true
# The user of the image.
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "lifthouse.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Environment of the ClickHouse service. Takes root and secret: the name of the Secret with the user. */}}
{{- define "lifthouse.storeEnv" -}}
{{- $keys := .root.Values.store.secretKeys -}}
{{- if .root.Values.store.url }}
- name: LIFTHOUSE_STORE
  value: {{ .root.Values.store.url | quote }}
{{- else }}
- name: LIFTHOUSE_STORE
  valueFrom:
    secretKeyRef: {name: {{ .secret | quote }}, key: {{ $keys.url | quote }}}
{{- end }}
{{- if and .secret $keys.user }}
- name: CLICKHOUSE_USER
  valueFrom:
    secretKeyRef: {name: {{ .secret | quote }}, key: {{ $keys.user | quote }}}
{{- end }}
{{- if and .secret $keys.password }}
- name: CLICKHOUSE_PASSWORD_FILE
  value: /etc/lifthouse/store/password
{{- end }}
{{- if .root.Values.store.caSecret }}
- name: CLICKHOUSE_CA
  value: /etc/lifthouse/ca/ca.crt
{{- end }}
{{- if .root.Values.store.clientCertificateSecret }}
- name: CLICKHOUSE_CERT
  value: /etc/lifthouse/client/tls.crt
- name: CLICKHOUSE_KEY
  value: /etc/lifthouse/client/tls.key
{{- end }}
{{- end -}}

{{- define "lifthouse.storeMounts" -}}
{{- if and .secret .root.Values.store.secretKeys.password }}
- {name: store, mountPath: /etc/lifthouse/store, readOnly: true}
{{- end }}
{{- if .root.Values.store.caSecret }}
- {name: ca, mountPath: /etc/lifthouse/ca, readOnly: true}
{{- end }}
{{- if .root.Values.store.clientCertificateSecret }}
- {name: client, mountPath: /etc/lifthouse/client, readOnly: true}
{{- end }}
{{- end -}}

{{- define "lifthouse.storeVolumes" -}}
{{- if and .secret .root.Values.store.secretKeys.password }}
- name: store
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    items:
      - {key: {{ .root.Values.store.secretKeys.password | quote }}, path: password}
{{- end }}
{{- with .root.Values.store.caSecret }}
- name: ca
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- with .root.Values.store.clientCertificateSecret }}
- name: client
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* Settings as environment variables. toJson writes large numbers in digits. */}}
{{- define "lifthouse.settingsEnv" -}}
{{- $defaults := dict -}}
{{- if eq .Values.mode "embedded" -}}
{{- $_ := set $defaults "query-memory" 2147483648 -}}
{{- end -}}
{{- range $name, $value := merge (deepCopy .Values.settings) $defaults }}
- name: LIFTHOUSE_{{ $name | replace "-" "_" | upper }}
{{- if kindIs "slice" $value }}
  value: {{ join "," $value | quote }}
{{- else if kindIs "string" $value }}
  value: {{ $value | quote }}
{{- else }}
  value: {{ $value | toJson | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Template of the server's pods. */}}
{{- define "lifthouse.pod" -}}
{{- $store := dict "root" . "secret" .Values.store.existingSecret -}}
{{- $embedded := eq .Values.mode "embedded" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.existingSecret "") -}}
metadata:
  labels:
    {{- include "lifthouse.selectorLabels" . | nindent 4 }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "lifthouse.serviceAccount" . }}
  # The program does not use the API of Kubernetes.
  automountServiceAccountToken: false
  # Variables of services, such as LIFTHOUSE_PORT, would be taken for settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.drain.delaySeconds .Values.drain.timeoutSeconds 10 }}
  securityContext:
    {{- include "lifthouse.podSecurityContext" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: lifthouse
      image: {{ include "lifthouse.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env:
        {{- if $embedded }}
        # A folder in the volume, whose root may have other files.
        - name: LIFTHOUSE_STORE
          value: embedded:/data/store
        {{- else }}
        {{- with include "lifthouse.storeEnv" $store | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- end }}
        - name: LIFTHOUSE_LISTEN
          value: ":8080"
        {{- if .Values.metrics.enabled }}
        - name: LIFTHOUSE_ADMIN_ADDRESS
          value: ":8081"
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: LIFTHOUSE_TLS_CERT
          value: /etc/lifthouse/tls/tls.crt
        - name: LIFTHOUSE_TLS_KEY
          value: /etc/lifthouse/tls/tls.key
        {{- end }}
        - name: LIFTHOUSE_DRAIN_DELAY
          value: {{ .Values.drain.delaySeconds }}s
        - name: LIFTHOUSE_DRAIN_TIMEOUT
          value: {{ .Values.drain.timeoutSeconds }}s
        {{- with include "lifthouse.settingsEnv" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        {{- if .Values.metrics.enabled }}
        - {name: metrics, containerPort: 8081, protocol: TCP}
        {{- end }}
      # The server listens once the store is open.
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: {{ div (add .Values.startupSeconds 4) 5 }}
      # The process responds. The store does not matter: a restart does not repair it.
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # The store responds and has the tables of this release. The program waits 2 seconds for the store.
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ $scheme }}}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      resources:
        {{- toYaml (get .Values.resources .Values.mode) | nindent 8 }}
      securityContext:
        {{- include "lifthouse.securityContext" . | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.webhooks.existingSecret }}
        - {name: webhooks, mountPath: /etc/lifthouse/webhooks, readOnly: true}
        {{- end }}
        {{- if $embedded }}
        - {name: data, mountPath: /data}
        {{- else }}
        {{- with include "lifthouse.storeMounts" $store | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /etc/lifthouse/tls, readOnly: true}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- with .Values.webhooks.existingSecret }}
    - name: webhooks
      secret:
        secretName: {{ . }}
    {{- end }}
    {{- if not $embedded }}
    {{- with include "lifthouse.storeVolumes" $store | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret:
        secretName: {{ . | quote }}
        defaultMode: 0440
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if not $embedded }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "lifthouse.selectorLabels" . | nindent 10 }}
  {{- end }}
{{- end -}}
