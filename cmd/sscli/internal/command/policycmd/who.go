package policycmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/policy"
)

func newWho(a *app.App) *cobra.Command {
	var methods []string
	cmd := &cobra.Command{
		Use:   "who FILE... KEY|TOPIC",
		Short: "Show who may use a key or a topic",
		Long: `Show who may read or write a key, or publish or subscribe to a topic, in the words of the
rules: a line for each principal of each rule that allows it, with what its client must be
besides. The exit code is 1 if nobody may.

` + forms,
		Example: "  sscli policy who authz.yaml colors/red --method write -o human",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.Usagef("expected FILE and a key or a topic")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := policy.Method(0)
			for _, name := range methods {
				m, ok := policy.ParseMethod(name)
				if !ok || m == policy.Connect {
					return fault.Usagef("--method %.32q: must be read, write, publish or subscribe", name)
				}
				asked |= m
			}
			last := len(args) - 1
			p, err := read(cmd.Context(), a, args[:last]...)
			if err != nil {
				return err
			}
			return who(cmd.Context(), a, p, asked, args[last])
		},
	}
	cmd.Flags().StringSliceVar(&methods, "method", nil, "only this `METHOD`: read, write, publish or subscribe; may be repeated")
	return cmd
}

func who(ctx context.Context, a *app.App, p *policy.Policy, asked policy.Method, on string) error {
	found := false
	all := asked
	if all == 0 {
		all = policy.Publish | policy.Subscribe | policy.Read | policy.Write
	}
	for _, m := range all.Each() {
		action := policy.Action{Method: m, On: on}
		if err := action.Check(); err != nil && asked == m {
			return asUsage(err)
		} else if err != nil {
			continue // such as to publish to a filter
		}
		for _, h := range p.Who(ctx, action) {
			found = true
			f := format.PolicyHolder{Method: m.String(), On: on, Who: h.Principals, If: h.If, Where: p.Where(h.Entry), Entry: h.Entry.String()}
			if !h.Connects {
				f.Lacks = "it may not connect"
			}
			if err := a.Queue(f); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.Flush(); err != nil {
		return err
	}
	if !found {
		a.Inform("no rule allows anybody to use " + format.Word(on))
	}
	return fault.NoIf(!found)
}
