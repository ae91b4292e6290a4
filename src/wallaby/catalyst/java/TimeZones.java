package wallaby;

import java.time.DateTimeException;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneOffsetTransitionRule;
import java.time.zone.ZoneRules;
import java.util.List;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;

/** Time zones as Java knows them. */
public class TimeZones {
    /** The rules of a time zone, in the text of relations/zone.py; null if there is no such zone. */
    static String zone(String name) {
        ZoneRules rules;
        try {
            ZoneId id = DateTimeUtils.getZoneId(name);
            rules = id.getRules();
        } catch (DateTimeException unknown) {
            return null;
        }
        List transitions = rules.getTransitions();
        StringBuilder out = new StringBuilder(name).append(';');
        if (transitions.isEmpty()) {
            out.append(rules.getOffset(java.time.Instant.EPOCH).getTotalSeconds());
        } else {
            out.append(((ZoneOffsetTransition) transitions.get(0)).getOffsetBefore().getTotalSeconds());
        }
        out.append(';');
        for (int i = 0; i < transitions.size(); i++) {
            ZoneOffsetTransition transition = (ZoneOffsetTransition) transitions.get(i);
            out.append(i == 0 ? "" : ",").append(transition.toEpochSecond());
            out.append(':').append(transition.getOffsetAfter().getTotalSeconds());
        }
        List yearly = rules.getTransitionRules();
        for (int i = 0; i < yearly.size(); i++) {
            yearlyRule(out.append(';'), (ZoneOffsetTransitionRule) yearly.get(i));
        }
        return out.toString();
    }

    private static void yearlyRule(StringBuilder out, ZoneOffsetTransitionRule rule) {
        int second = rule.isMidnightEndOfDay() ? 86400 : rule.getLocalTime().toSecondOfDay();
        int base = 0;
        if (rule.getTimeDefinition() == ZoneOffsetTransitionRule.TimeDefinition.WALL) {
            base = rule.getOffsetBefore().getTotalSeconds();
        } else if (rule.getTimeDefinition() == ZoneOffsetTransitionRule.TimeDefinition.STANDARD) {
            base = rule.getStandardOffset().getTotalSeconds();
        }
        out.append(rule.getMonth().getValue()).append(',').append(rule.getDayOfMonthIndicator()).append(',');
        out.append(rule.getDayOfWeek() == null ? 0 : rule.getDayOfWeek().getValue()).append(',').append(second);
        out.append(',').append(base).append(',').append(rule.getOffsetAfter().getTotalSeconds());
    }
}
