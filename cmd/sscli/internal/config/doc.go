// Package config finds out what the user configured: which broker, which
// credentials, which output, and who said so.
//
// Bind puts the connection flags on a flag set, [Resolve] combines them with the
// environment and the contexts:
//
//	config.Bind(cmd.PersistentFlags())
//	…
//	settings, err := config.Resolve(cmd.Flags(), os.LookupEnv)
//
// A setting comes from the first of: a flag, the context that a flag names, an
// SSCLI_ variable, the chosen context, an AIO_ variable (protocol.md 7.1). Host, port
// and TLS belong together: whoever names the host makes the port and the TLS setting
// of everybody after him void, so that a stray variable cannot bend a connection
// halfway. So do a client certificate and its key, and the ways to log in: a token
// voids the user names of those behind it. A chosen context is for its own broker:
// whoever before it names another voids all of it.
//
// A context is a named connection; [Load] reads the file that holds them, [Edit]
// changes it. It holds the names of files with secrets and never a secret.
package config
