# The image of a release contains only the program, for amd64, arm64 and arm/v7.
# GoReleaser prepares the context (dockers_v2 in .goreleaser.yaml).
FROM scratch
ARG TARGETPLATFORM
# scratch has no PATH, and kubectl exec needs one to find sscli.
ENV PATH=/usr/bin
COPY $TARGETPLATFORM/sscli /usr/bin/sscli
# The name under which the program has the command line of Microsoft's tool
COPY build/image/bin/ /usr/bin/
# A new volume takes the owner from the directory that it is mounted on.
COPY --chown=65532:65532 build/image/data/ /data/
COPY LICENSE build/THIRD-PARTY-LICENSES /usr/share/doc/sscli/
# nobody, as a number, so that Kubernetes can check runAsNonRoot
USER 65532:65532
# Without a command, the image is a broker with a state store, for tests. Nobody has to log in, because nobody
# reaches the port but through what the container publishes.
EXPOSE 1883
# A server that refuses the login, which the check does not have, is healthy.
HEALTHCHECK --interval=2s --timeout=2s --start-period=5s CMD ["/usr/bin/sscli", "ping", "-u", "mqtt://127.0.0.1:1883", "-n", "1", "-q", "--alive"]
ENTRYPOINT ["/usr/bin/sscli"]
CMD ["serve", "--listen", "0.0.0.0:1883", "--no-login"]
