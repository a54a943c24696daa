// Package config resolves the user's settings: the broker, the credentials, the form of
// output, and the source of each value.
//
// [Bind] defines the flags of all settings on a flag set. [Resolve] combines the flags with the
// environment and the contexts:
//
//	config.Bind(cmd.PersistentFlags())
//	…
//	settings, err := config.Resolve(cmd.Flags(), os.LookupEnv)
//
// All settings are in one table, settings() in settings.go. To add a setting, add a row. The row
// defines its flag, its variables, its key in contexts, and its line in help and in `context show`.
//
// In order of precedence, a setting comes from a flag, the context that a flag names, an SSCLI_
// variable, the chosen context, or an AIO_ variable (protocol.md 7.1). Some settings are
// resolved together, so that a stray variable cannot change half of a connection:
//
//   - host, port and TLS: the source that names the host hides the port and the TLS setting of
//     all later sources;
//   - a client certificate hides the keys of all later sources;
//   - a token hides the user names of all later sources, and a user name hides the tokens;
//   - a flag or an SSCLI_ variable that names a broker hides the whole chosen context.
//
// A context is a named connection. [Load] reads the context file; [Edit] changes it. The file
// never holds a secret, only the names of files with secrets.
//
// The package reads files, and the environment through a function. It never connects.
package config
