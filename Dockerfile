# The image of a release: the program and nothing else, for amd64, arm64 and arm/v7.
# GoReleaser lays the context out (dockers_v2 in .goreleaser.yaml).
FROM scratch
ARG TARGETPLATFORM
# No PATH comes with scratch, and kubectl exec wants to find sscli.
ENV PATH=/usr/bin
COPY $TARGETPLATFORM/sscli /usr/bin/sscli
COPY LICENSE build/THIRD-PARTY-LICENSES /usr/share/doc/sscli/
# nobody; a number, so that Kubernetes can tell for runAsNonRoot
USER 65532:65532
ENTRYPOINT ["/usr/bin/sscli"]
