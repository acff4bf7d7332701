#!/usr/bin/env bash
# A real control plane with OpenSDN on this machine: the sample cluster is applied, bad
# manifests are refused, an upgrade and a nested cluster are planned, and it stays up until Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

gate/setup.sh cluster
take_build_slot
echo "building OpenSDN (the first time about six minutes, then seconds)"
# By their names: with --package the dependencies would have other features than in `make test`.
cargo build --quiet --locked --bin opensdn-sandbox --bin opensdn-webhook --bin opensdn-operator \
  --bin kubectl-opensdn 8>&-
record_sources

dir=$PWD/target/run
sandbox=target/debug/opensdn-sandbox
finish() {
  trap - EXIT INT TERM
  "$sandbox" down --dir "$dir"
}
trap finish EXIT
trap 'exit 0' INT TERM

echo "starting Kubernetes and OpenSDN (about ten seconds)"
"$sandbox" up --dir "$dir" --product --operator --config-api --simulated-nodes 3 8>&-
kubectl=$("$sandbox" status --dir "$dir" | sed -n 's/^kubectl *//p')
export KUBECONFIG=$dir/kubeconfig
config_api=$("$sandbox" status --dir "$dir" | sed -n 's/^config API *\([^ ,]*\).*/\1/p')

samples="-f deploy/samples/vrouter-profile.yaml -f deploy/samples/manager.yaml -f deploy/samples/link-local-service.yaml"
echo
echo "A good cluster is stored, with its defaults written in:"
echo "\$ kubectl apply $samples"
# What the cluster names is there, so that nothing about it is worth a warning.
"$kubectl" label nodes --all node-role.kubernetes.io/control-plane= >/dev/null
"$kubectl" apply --server-side -f deploy/samples-prerequisites.yaml >/dev/null
# As kubeadm leaves it in a cluster. This API server is on 127.0.0.1, which no EndpointSlice may say.
"$kubectl" create configmap kubeadm-config --namespace kube-system \
  --from-literal='ClusterConfiguration={"clusterName": "kubernetes", "controlPlaneEndpoint": "192.0.2.1:6443"}' >/dev/null
# shellcheck disable=SC2086 # several arguments
"$kubectl" apply $samples
echo
echo "The operator makes objects of its services, and pods of these (on these nodes nothing runs in them):"
echo "(waiting until all are ready, some two minutes: about 80 keys of 4,096 bits are made, by a build for development)"
"$kubectl" wait --namespace tf --for=condition=Ready manager/cluster1 --timeout=300s >/dev/null 2>&1 || {
  "$kubectl" get manager/cluster1 --namespace tf \
    -o jsonpath='{range .status.services[*]}{.kind} {.name}: {.message}{"\n"}{end}'
  echo "The Manager is not Ready after five minutes; above is what each of its services waits for."
}
echo "\$ kubectl get opensdn --all-namespaces"
"$kubectl" get opensdn --all-namespaces
for manifest in deploy/samples-refused/*.yaml; do
  echo
  echo "A bad one is refused, with every reason and what to do:"
  echo "\$ kubectl apply -f $manifest"
  if "$kubectl" apply -f "$manifest"; then
    echo "run: $manifest was stored, but must be refused" >&2
    exit 1
  fi
done

echo
echo "What another release would change, in which order, and what speaks against it:"
echo "\$ kubectl opensdn upgrade plan R24.1.1 --namespace tf"
# Where the Manager is not Ready it ends with 1, and says so.
target/debug/kubectl-opensdn upgrade plan R24.1.1 --namespace tf || true

nested="-f deploy/samples/nested-cluster.yaml --config-api $config_api"
echo
echo "In nested mode the nodes are virtual machines of a cloud that has OpenSDN already. What a cluster on them"
echo "needs there, and what speaks against it; the cloud is a fake of its Config API:"
echo "\$ kubectl opensdn nested plan $nested"
# shellcheck disable=SC2086 # several arguments
env -u OS_AUTH_URL target/debug/kubectl-opensdn nested plan $nested

cat <<EOT

OpenSDN is yours to try, in another terminal:

    export KUBECONFIG=$KUBECONFIG
    kubectl get opensdn --all-namespaces
    kubectl explain manager.spec

The upgrade that was planned is carried out, up to the vrouters, by

    export PATH=$PWD/target/debug:\$PATH
    kubectl opensdn upgrade apply R24.1.1 --namespace tf --yes --soak 2s --pause-before vrouters

What was planned of the nested cluster is written, shown as it is in place, and taken away by

    kubectl opensdn nested apply $nested --backup-dir target
    kubectl opensdn nested plan $nested
    kubectl opensdn nested remove --config-api $config_api --backup-dir target

Without kubectl of your own, use $kubectl
Ctrl-C ends it and removes everything.
EOT
# In the background, so that a signal is heeded at once.
sleep infinity 8>&- &
wait $!
