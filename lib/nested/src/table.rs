//! The rows as a table for people, with the columns of the old documentation. Pure text, without colour.

use crate::rows::PlannedRow;

const HEADER: [&str; 5] =
    ["LL Service Name", "Service IP", "Service Port", "Fabric IP", "Fabric Port"];

/// The table, a line each.
#[must_use]
pub fn table(rows: &[PlannedRow]) -> String {
    let lines: Vec<[String; 5]> =
        [HEADER.map(str::to_owned)].into_iter().chain(rows.iter().map(cells)).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().enumerate();
        let padded = cells.map(|(column, cell)| format!("{cell:<0$}", width(column)));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn cells(row: &PlannedRow) -> [String; 5] {
    [
        // A name of another owner may have anything in it.
        row.name.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect(),
        row.service.address.to_string(),
        row.service.port.to_string(),
        row.target.address.to_string(),
        row.target.port.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::fixture;

    #[test]
    fn columns_are_aligned() {
        let plan = crate::plan(&fixture::snat_input(), &fixture::empty_cloud());
        assert_eq!(
            table(&plan.rows),
            "LL Service Name   Service IP  Service Port  Fabric IP  Fabric Port\n\
             K8s-cni-to-agent  10.10.10.1  9091          127.0.0.1  9091\n"
        );
    }

    #[test]
    fn a_name_of_another_owner_cannot_write_to_the_terminal() {
        let mut plan = crate::plan(&fixture::snat_input(), &fixture::empty_cloud());
        plan.rows[0].name = "a\u{1b}[31m\nb".to_owned();
        assert_eq!(table(&plan.rows).lines().count(), 2);
        assert!(!table(&plan.rows).contains('\u{1b}'));
    }
}
