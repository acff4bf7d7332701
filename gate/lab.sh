#!/usr/bin/env bash
# The lab: a cluster of three real nodes on this machine, until Ctrl-C. Needs Linux and root.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

gate/setup.sh cluster lab
take_build_slot
echo "building the lab (the first time about ten minutes, then seconds)"
cargo build --quiet --locked --bin opensdn-sandbox 8>&-
record_sources

dir=$PWD/target/lab
sandbox=target/debug/opensdn-sandbox
"$sandbox" lab-check
echo "building the webhook's image (the first time about ten minutes)"
deploy/images/build.sh webhook >/dev/null
finish() {
  trap - EXIT INT TERM
  "$sandbox" down --dir "$dir"
}
trap finish EXIT
trap 'exit 0' INT TERM

echo "starting Kubernetes with three nodes, and OpenSDN in pods on them (about a minute)"
"$sandbox" up --dir "$dir" --nodes 3 --product 8>&-
kubectl=$("$sandbox" status --dir "$dir" | sed -n 's/^kubectl *//p')
# The samples are in it.
KUBECONFIG=$dir/kubeconfig "$kubectl" create namespace tf >/dev/null

cat <<EOT

The lab is yours to try, in another terminal:

    export KUBECONFIG=$dir/kubeconfig
    kubectl -n opensdn-system get pods -o wide          # the webhook, a replica on each node
    kubectl get admissionpolicies                       # what it enforces
    kubectl apply -f deploy/samples-refused/manager.yaml
    kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data    # and apply again
    kubectl run shell --image opensdn.lab/tools:1 --image-pull-policy Never -it --rm

Images come from archives only, there is no registry: on each node
\`ctr -n k8s.io images import ARCHIVE\`; the shells on the nodes are told above.
Without kubectl of your own, use $kubectl
Ctrl-C ends it and removes everything.
EOT
# In the background, so that a signal is heeded at once.
sleep infinity 8>&- &
wait $!
