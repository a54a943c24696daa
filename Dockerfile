# The image of a release contains only the program, for amd64, arm64 and arm/v7.
# GoReleaser prepares the context (dockers_v2 in .goreleaser.yaml).
FROM scratch
ARG TARGETPLATFORM
# scratch has no PATH, and kubectl exec needs one to find sscli.
ENV PATH=/usr/bin
COPY $TARGETPLATFORM/sscli /usr/bin/sscli
COPY LICENSE build/THIRD-PARTY-LICENSES /usr/share/doc/sscli/
# nobody, as a number, so that Kubernetes can check runAsNonRoot
USER 65532:65532
ENTRYPOINT ["/usr/bin/sscli"]
