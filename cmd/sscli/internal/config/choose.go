package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// An Override holds the names of the variables that override the chosen context, in part or as a whole.
type Override struct {
	Context   string   // the context's name; empty = nothing was overridden
	Variables []string // the names of the variables
}

// namesBroker returns the flag of l that names a broker: url, host or embedded. ok is false if l has
// none of them, or only embedded=false.
func (l layer) namesBroker() (flag string, ok bool) {
	for _, flag := range []string{"url", "host", "embedded"} {
		if l.has(flag) && l[flag].value != "false" {
			return flag, true
		}
	}
	return "", false
}

// context finds the context to use and returns its layer. If a flag names the context, the layer is in
// named, and takes precedence over the SSCLI_ variables. Otherwise the layer is in chosen, and the
// SSCLI_ variables take precedence over it. A flag or a variable that names a broker hides all of a
// chosen context, because the context's users, tokens and certificates are for another broker.
func (r *resolver) context(fs *pflag.FlagSet, env func(string) (string, bool), flags, vars layer) (named, chosen layer) {
	byFlag := flags.has("context")
	said := flags["context"]
	if !byFlag {
		said = vars["context"]
	}
	name, source := said.value, said.source
	if name == None {
		r.out.Sources["context"] = source
		return nil, nil
	}
	if _, elsewhere := flags.namesBroker(); elsewhere && !byFlag {
		return nil, nil
	}
	by, voided := vars.namesBroker()
	voided = voided && !byFlag
	all, file, err := loadOne(fs, env, name)
	if err != nil {
		if !voided { // otherwise the file is not needed
			r.fail(err)
		}
		return nil, nil
	}
	where := source.String()
	if name == "" {
		name, where = all.Chosen, file+": current"
	}
	if name == "" {
		r.out.Choices = all.Names()
		return nil, nil
	}
	if voided {
		r.out.Override = Override{name, []string{vars[by].source.Env}}
		return nil, nil
	}
	c, err := all.Find(name, where, file)
	if err != nil {
		r.fail(err)
		return nil, nil
	}
	l := c.layer(name, file)
	r.fail(l.expand())
	r.out.Context, r.out.ContextFile, r.out.Protected = name, file, c.Protected
	r.out.Sources["context"] = source
	if byFlag {
		return l, nil
	}
	if before := overriding(flags, vars, l); len(before) > 0 {
		r.out.Override = Override{name, before}
	}
	return nil, l
}

// overriding returns the names of the variables that override values of the context.
func overriding(flags, vars, context layer) []string {
	var names []string
	for _, s := range settings() {
		same := []string{s.flag}
		if s.group == groupLogin {
			same = flagsOf(func(s setting) bool { return s.group == groupLogin })
		}
		if vars.has(s.flag) && context.has(same...) && !flags.has(s.flag) {
			names = append(names, vars[s.flag].source.Env)
		}
	}
	return slices.Compact(names)
}
