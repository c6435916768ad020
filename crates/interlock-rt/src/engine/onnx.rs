//! The little that must be known about a graph before ONNX Runtime reads it: how many nodes, and which other files.

use std::collections::BTreeSet;

use prost::Message;

use crate::error::RtError;

// Field numbers of onnx.proto3, IR version 3 and later; everything else is skipped.
#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
    #[prost(message, repeated, tag = "25")]
    functions: Vec<Function>,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(message, repeated, tag = "7")]
    node: Vec<Node>,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(message, repeated, tag = "1")]
    node: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<Initializer>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(message, optional, tag = "5")]
    t: Option<Initializer>,
    #[prost(message, optional, tag = "6")]
    g: Option<Graph>,
    #[prost(message, repeated, tag = "10")]
    tensors: Vec<Initializer>,
    #[prost(message, repeated, tag = "11")]
    graphs: Vec<Graph>,
}

#[derive(Clone, PartialEq, Message)]
struct Initializer {
    #[prost(message, repeated, tag = "13")]
    external_data: Vec<Entry>,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// What a graph says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Nodes of the main graph, before optimisation.
    pub(super) nodes: usize,
    /// Files that hold some of its tensors, as written.
    pub(super) external: BTreeSet<String>,
}

/// Reads `bytes` as an ONNX model.
pub(super) fn summarize(bytes: &[u8]) -> Result<Summary, RtError> {
    let refuse = |got: String| {
        RtError::new(
            "engine-graph",
            format!("expected an ONNX model, got {got}"),
            "build the policy again: `interlock build`",
        )
    };
    let model =
        Model::decode(bytes).map_err(|error| refuse(format!("{} bytes that are none: {error}", bytes.len())))?;
    let Some(graph) = model.graph else {
        return Err(refuse(format!("{} bytes without a graph", bytes.len())));
    };
    let mut external = BTreeSet::new();
    collect_graph(&graph, &mut external);
    model.functions.iter().for_each(|function| collect_nodes(&function.node, &mut external));
    Ok(Summary { nodes: graph.node.len(), external })
}

fn collect_graph(graph: &Graph, out: &mut BTreeSet<String>) {
    graph.initializer.iter().for_each(|tensor| collect_tensor(tensor, out));
    collect_nodes(&graph.node, out);
}

fn collect_nodes(nodes: &[Node], out: &mut BTreeSet<String>) {
    for attribute in nodes.iter().flat_map(|node| &node.attribute) {
        attribute.t.iter().chain(&attribute.tensors).for_each(|tensor| collect_tensor(tensor, out));
        attribute.g.iter().chain(&attribute.graphs).for_each(|graph| collect_graph(graph, out));
    }
}

fn collect_tensor(tensor: &Initializer, out: &mut BTreeSet<String>) {
    if tensor.data_location == 1 {
        let location = tensor.external_data.iter().find(|entry| entry.key == "location");
        out.insert(location.map_or_else(String::new, |entry| entry.value.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_named_inside_a_branch_of_the_graph_are_found() {
        let tensor = |name: &str| Initializer {
            external_data: vec![Entry { key: "location".into(), value: name.into() }],
            data_location: 1,
        };
        let branch = Graph { node: vec![], initializer: vec![tensor("branch.bin")] };
        let node = Node { attribute: vec![Attribute { g: Some(branch), ..Attribute::default() }] };
        let graph = Graph { node: vec![node], initializer: vec![tensor("weights.bin"), Initializer::default()] };
        let bytes = Model { graph: Some(graph), functions: vec![] }.encode_to_vec();
        let summary = summarize(&bytes).unwrap();
        assert_eq!(summary.nodes, 1);
        assert_eq!(summary.external.into_iter().collect::<Vec<_>>(), ["branch.bin", "weights.bin"]);
    }

    #[test]
    fn bytes_that_are_no_model_are_refused() {
        for bytes in [&b""[..], b"\x80\x04\x95pickle", &[0xff; 64]] {
            assert_eq!(summarize(bytes).unwrap_err().code, "engine-graph");
        }
    }
}
