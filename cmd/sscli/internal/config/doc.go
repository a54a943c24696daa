// Package config finds out what the user configured: which broker, which
// credentials, which form of output, and where each value came from.
//
// [Bind] defines the connection flags on a flag set. [Resolve] combines the flags with the
// environment and the contexts:
//
//	config.Bind(cmd.PersistentFlags())
//	…
//	settings, err := config.Resolve(cmd.Flags(), os.LookupEnv)
//
// All settings are in one table, settings() in settings.go. A new setting is a new row there. The
// row gives it a flag, variables, a key in contexts, and a line in help and in `context show`.
//
// In order of precedence, a setting comes from a flag, the context that a flag names, an SSCLI_
// variable, the chosen context, or an AIO_ variable (protocol.md 7.1). Some settings are
// decided together, so that a stray variable cannot change half of a connection:
//
//   - host, port and TLS: the source that names the host hides the port and the TLS setting of
//     all sources after it;
//   - a client certificate and its key, likewise;
//   - the ways to log in: a token hides the user names after it, and the reverse;
//   - a context: a flag or an SSCLI_ variable that names another broker hides the whole chosen
//     context.
//
// A context is a named connection. [Load] reads the file of contexts, [Edit] changes it. The
// file holds names of files with secrets and never a secret.
//
// The package reads files and the environment that it is given. It makes no connection.
package config
