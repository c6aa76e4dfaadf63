# Lifthouse for a store on ClickHouse servers. With --target embedded, the image includes the ClickHouse library.
#
# Base images are pinned by version. 'docker buildx imagetools inspect IMAGE' prints the digest.
FROM golang:1.26.0-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The version that the program reports; empty: unknown, because the build context has no repository.
ARG VERSION=
RUN bash .ci/opinion
RUN CGO_ENABLED=0 go build -tags nomsgpack -trimpath -ldflags="-s -w -X main.release=$VERSION" -o /out/lifthouse ./cmd/lifthouse
RUN mkdir -p /out/data

FROM node:22.19.0-bookworm-slim AS engine
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --loglevel=error && mkdir -p /out && cp node_modules/@chdb/*/libchdb.so /out/

FROM debian:12.11-slim AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/lifthouse /usr/local/bin/lifthouse
# An unprivileged user and group, which own only the directory of an embedded store.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
WORKDIR /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["lifthouse", "ready"]
ENTRYPOINT ["lifthouse"]
CMD ["serve", "--listen", "0.0.0.0:8080"]

FROM base AS embedded
COPY --from=engine /out/libchdb.so /usr/local/bin/libchdb.so
VOLUME /data

FROM base AS server
