package wallaby;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

/** The nodes of one plan and of its expressions, each with its children and its fields, and what else they refer to. */
public class PlanNodes {
    private final PlanExpressions expressions;
    private final Listings listings;
    /** The filter right above what is being written, if there is one. */
    private Filter filter = null;
    /** The columns that were written last, by id. Operators name the columns of their children again and again. */
    private final Map written = new HashMap();

    PlanNodes(PlanExpressions expressions, Listings listings) {
        this.expressions = expressions;
        this.listings = listings;
    }

    /** A whole plan, from its root. */
    void plan(StringBuilder out, LogicalPlan plan) throws Exception {
        node(out, plan, true);
    }

    private void node(StringBuilder out, TreeNode node, boolean root) throws Exception {
        if (node instanceof AttributeReference && isWritten((AttributeReference) node)) {
            out.append("{\"@\":").append(((AttributeReference) node).exprId().id()).append('}');
            return;
        }
        if (node instanceof LogicalPlan && !node.children().isEmpty()) {
            filter = node instanceof Filter ? (Filter) node : null;
        }
        out.append("{\"c\":");
        Json.text(out, node.getClass().getName());
        if (node instanceof Expression) {
            expressions.expression(out, (Expression) node);
        }
        if (node instanceof LogicalPlan && (root || node instanceof Union || node instanceof Generate)) {
            out.append(",\"o\":");
            sequence(out, ((LogicalPlan) node).output().iterator());
        }
        out.append(",\"k\":");
        sequence(out, node.children().iterator());
        if (node instanceof scala.Product && !(node instanceof Literal) && !(node instanceof AttributeReference)) {
            out.append(",\"f\":{");
            fields(out, (scala.Product) node, node instanceof LogicalPlan);
            out.append('}');
        }
        out.append('}');
        if (node instanceof LogicalPlan) {
            filter = null;
        }
    }

    /** Was this column written before, just as it is now? It may be NULL above an outer join, and below it not. */
    private boolean isWritten(AttributeReference column) {
        AttributeReference last = (AttributeReference) written.put(Long.valueOf(column.exprId().id()), column);
        return last != null && last.nullable() == column.nullable() && last.name().equals(column.name())
            && last.dataType().equals(column.dataType()) && last.metadata().equals(column.metadata());
    }

    /** The fields of a case class. Children are written as such, so they are left out here. */
    private void fields(StringBuilder out, scala.Product product, boolean isPlan) throws Exception {
        boolean first = true;
        for (int i = 0; i < product.productArity(); i++) {
            Object field = product.productElement(i);
            Object part = field instanceof scala.Option && ((scala.Option) field).isDefined() ? ((scala.Option) field).get() : field;
            if (part instanceof scala.collection.Seq && !((scala.collection.Seq) part).isEmpty()) {
                part = ((scala.collection.Seq) part).head();
            }
            if (isPlan ? part instanceof LogicalPlan : part instanceof Expression || part instanceof scala.Tuple2) {
                continue;
            }
            if (product instanceof InSet && part instanceof scala.collection.Set) {
                continue;
            }
            out.append(first ? "" : ",");
            first = false;
            Json.text(out, product.productElementName(i));
            out.append(':');
            if (product instanceof LocalRelation && product.productElementName(i).equals("data")) {
                localRows(out, (LocalRelation) product);
            } else {
                any(out, field);
            }
        }
    }

    /** The rows that stand in the plan itself, each a list of values; null if they are many. */
    private void localRows(StringBuilder out, LocalRelation relation) {
        if (relation.data().size() > PlanValues.ROWS_MAX) {
            out.append("null");
            return;
        }
        out.append('[');
        scala.collection.Iterator rows = relation.data().iterator();
        while (rows.hasNext()) {
            InternalRow row = (InternalRow) rows.next();
            out.append('[');
            for (int i = 0; i < relation.output().size(); i++) {
                out.append(i == 0 ? "" : ",");
                DataType type = ((NamedExpression) relation.output().apply(i)).toAttribute().dataType();
                PlanValues.literal(out, row.isNullAt(i) ? null : row.get(i, type), type);
            }
            out.append(rows.hasNext() ? "]," : "]");
        }
        out.append(']');
    }

    private void any(StringBuilder out, Object value) throws Exception {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof String || value instanceof Character || value instanceof Enum) {
            Json.text(out, value.toString());
        } else if (value instanceof TreeNode) {
            node(out, (TreeNode) value, false);
        } else if (value instanceof scala.Option) {
            any(out, ((scala.Option) value).isEmpty() ? null : ((scala.Option) value).get());
        } else if (value instanceof ExprId) {
            out.append(((ExprId) value).id());
        } else if (value instanceof DataType) {
            Json.text(out, PlanValues.typeText((DataType) value));
        } else if (value instanceof Class) {
            Json.text(out, ((Class) value).getName());
        } else if (value instanceof UTF8String) {
            PlanValues.value(out, value);
        } else if (value instanceof HadoopFsRelation) {
            PlanFiles.fileRelation(out, (HadoopFsRelation) value, filter, listings);
        } else if (LakeTables.isIceberg(value)) {
            PlanFiles.icebergScan(out, value);
        } else if (value instanceof ExistenceJoin) {
            out.append("{\"opaque\":\"ExistenceJoin\",\"exists\":");
            node(out, ((ExistenceJoin) value).exists(), false);
            out.append('}');
        } else if (value instanceof scala.collection.Seq) {
            sequence(out, ((scala.collection.Seq) value).iterator());
        } else {
            out.append("{\"opaque\":");
            Json.text(out, value.getClass().getName());
            out.append('}');
        }
    }

    void sequence(StringBuilder out, scala.collection.Iterator items) throws Exception {
        out.append('[');
        String separator = "";
        boolean more = true;
        while (more && items.hasNext()) {
            out.append(separator);
            int from = out.length();
            any(out, items.next());
            separator = ",";
            // Rows and the like, of which there may be millions: only one is written.
            more = out.indexOf("{\"opaque\"", from) != from;
        }
        out.append(']');
    }
}
